SELECT COUNT(*) FROM people
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) AS women FROM people WHERE sex = 'F'
--> women: number
--> 1 bought, 1 rows

SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC
--> sex: group, n: number
--> 1 bought, 3 rows

SELECT AVG(age) FROM people
--> AVG(age): number
--> 2 bought, 1 rows

SELECT sex, AVG(age) AS mean_age FROM people GROUP BY sex
--> sex: group, mean_age: number
--> 2 bought, 3 rows

SELECT state, AVG(age) AS mean_age, COUNT(*) AS n FROM people GROUP BY state ORDER BY mean_age DESC
--> state: group, mean_age: number, n: number
--> 2 bought, 5 rows

SELECT 100.0 * COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) AS pct_women FROM people
--> pct_women: number
--> 2 bought, 1 rows

SELECT ROUND(100.0 * SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) / COUNT(*), 2) AS pct_women FROM people
--> pct_women: number
--> 2 bought, 1 rows

SELECT state, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM people GROUP BY state ORDER BY pct DESC
--> state: group, pct: number
--> 1 bought, 5 rows

SELECT state, sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY state) AS pct_of_state FROM people GROUP BY state, sex
--> state: group, sex: group, pct_of_state: number
--> 1 bought, 15 rows

SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS stage, COUNT(*) AS n FROM people GROUP BY stage
--> stage: group, n: number
--> 1 bought, 3 rows

SELECT CASE WHEN age < 18 THEN 'minor' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS stage, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY 2 DESC
--> stage: group, n: number
--> 1 bought, 3 rows

SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM people GROUP BY decade ORDER BY decade
--> decade: group, n: number
--> 1 bought, 9 rows

SELECT age // 5 AS five_years, COUNT(*) FROM people GROUP BY five_years ORDER BY 1
--> five_years: group, COUNT(*): number
--> 1 bought, 18 rows

SELECT age / 10 AS decade, COUNT(*) FROM people GROUP BY 1
--> decade: group, COUNT(*): number
--> 1 bought, 86 rows

SELECT width_bucket(age, 0, 90, 9) AS bucket, COUNT(*) FROM people GROUP BY bucket ORDER BY bucket
--> bucket: group, COUNT(*): number
--> 1 bought, 9 rows

SELECT age < 18 AS is_minor, COUNT(*) FROM people GROUP BY is_minor
--> is_minor: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT age % 10 AS last_digit, COUNT(*) FROM people GROUP BY last_digit
--> last_digit: group, COUNT(*): number
--> 1 bought, 10 rows

SELECT age_group, COUNT(*) AS n FROM people GROUP BY age_group
--> age_group: group, n: number
--> 1 bought, 3 rows

SELECT age_group, sex, COUNT(*) AS n FROM people GROUP BY age_group, sex ORDER BY age_group, sex
--> age_group: group, sex: group, n: number
--> 1 bought, 9 rows

SELECT MEDIAN(age) AS median_age FROM people
--> median_age: number
--> 1 bought, 1 rows

SELECT sex, MEDIAN(age) AS median_age FROM people GROUP BY sex
--> sex: group, median_age: number
--> 1 bought, 3 rows

SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q1, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) AS q3 FROM people
--> q1: number, q3: number
--> 1 bought, 1 rows

SELECT QUANTILE_CONT(age, 0.9) FROM people WHERE employed
--> QUANTILE_CONT(age, 0.9): number
--> 1 bought, 1 rows

SELECT state, PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) AS typical FROM people GROUP BY state
--> state: group, typical: number
--> 1 bought, 5 rows

SELECT MEDIAN(income) FROM people
--> MEDIAN(income): number
--> 1 bought, 1 rows

SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) - PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS iqr FROM people
--> iqr: number
--> 1 bought, 1 rows

SELECT STDDEV(age) AS sd FROM people
--> sd: number
--> 3 bought, 1 rows

SELECT sex, AVG(age) AS mean, STDDEV_POP(age) AS sd FROM people GROUP BY sex
--> sex: group, mean: number, sd: number
--> 3 bought, 3 rows

SELECT VARIANCE(age) FROM people WHERE state = 'Maine'
--> VARIANCE(age): number
--> 3 bought, 1 rows

SELECT SUM(age * age) / COUNT(*) - POWER(AVG(age), 2) AS variance FROM people
--> variance: number
--> 3 bought, 1 rows

SELECT EXTRACT(YEAR FROM admitted) AS year, COUNT(*) FROM people GROUP BY year ORDER BY year
--> year: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT YEAR(admitted) AS y, QUARTER(admitted) AS q, COUNT(*) AS n FROM people GROUP BY y, q ORDER BY y, q
--> y: group, q: group, n: number
--> 1 bought, 8 rows

SELECT date_trunc('month', admitted) AS month, COUNT(*) AS n FROM people GROUP BY month ORDER BY month
--> month: group, n: number
--> 1 bought, 24 rows

SELECT date_trunc('quarter', admitted) AS quarter, COUNT(*) FROM people GROUP BY ALL ORDER BY 1
--> quarter: group, COUNT(*): number
--> 1 bought, 8 rows

SELECT MONTH(admitted) AS m, COUNT(*) FROM people GROUP BY m
--> m: group, COUNT(*): number
--> 1 bought, 12 rows

SELECT monthname(admitted) AS m, COUNT(*) FROM people WHERE YEAR(admitted) = 2020 GROUP BY m
--> m: group, COUNT(*): number
--> 1 bought, 12 rows

SELECT COUNT(*) FROM people WHERE admitted BETWEEN DATE '2020-03-01' AND DATE '2020-05-31'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE admitted >= DATE '2020-12-01' - INTERVAL 3 MONTH
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE EXTRACT(MONTH FROM admitted) IN (6, 7, 8)
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT admitted_year, COUNT(*) FROM people GROUP BY admitted_year
--> admitted_year: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 3
--> state: group, n: number
--> 1 bought, 5 rows

SELECT state, COUNT(*) AS n FROM people GROUP BY state ORDER BY n DESC LIMIT 3 OFFSET 1
--> state: group, n: number
--> 1 bought, 5 rows

SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING COUNT(*) > 1000
--> state: group, n: number
--> 1 bought, 5 rows

SELECT state, COUNT(*) AS n FROM people GROUP BY state HAVING n BETWEEN 100 AND 1000 ORDER BY state
--> state: group, n: number
--> 1 bought, 5 rows

SELECT state, AVG(age) AS mean FROM people GROUP BY state HAVING AVG(age) > 40 AND COUNT(*) > 50
--> state: group, mean: number
--> 2 bought, 5 rows

SELECT state, RANK() OVER (ORDER BY COUNT(*) DESC) AS place, COUNT(*) AS n FROM people GROUP BY state ORDER BY place
--> state: group, place: number, n: number
--> 1 bought, 5 rows

SELECT state, sex, DENSE_RANK() OVER (PARTITION BY sex ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY state, sex
--> state: group, sex: group, place: number
--> 1 bought, 15 rows

SELECT ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS number, state FROM people GROUP BY state
--> number: number, state: group
--> 1 bought, 5 rows

SELECT age_group, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age_group) AS running FROM people GROUP BY age_group
--> age_group: group, n: number, running: number
--> 1 bought, 3 rows

SELECT age, SUM(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS up_to FROM people GROUP BY age
--> age: group, up_to: number
--> 1 bought, 86 rows

SELECT age, 100.0 * SUM(COUNT(*)) OVER (ORDER BY age) / SUM(COUNT(*)) OVER () AS cumulative_pct FROM people GROUP BY age
--> age: group, cumulative_pct: number
--> 1 bought, 86 rows

SELECT state, COUNT(*) - AVG(COUNT(*)) OVER () AS above_average FROM people GROUP BY state
--> state: group, above_average: number
--> 1 bought, 5 rows

SELECT sex, state, COUNT(*) FROM people GROUP BY ROLLUP (sex, state)
--> sex: group, state: group, COUNT(*): number
--> 1 bought, 19 rows

SELECT sex, age_group, COUNT(*), AVG(age) FROM people GROUP BY CUBE (sex, age_group)
--> sex: group, age_group: group, COUNT(*): number, AVG(age): number
--> 2 bought, 16 rows

SELECT sex, state, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (state), ())
--> sex: group, state: group, COUNT(*): number
--> 1 bought, 9 rows

SELECT COALESCE(state, 'all') AS state, COUNT(*) AS n FROM people GROUP BY ROLLUP (state)
--> state: group, n: number
--> 1 bought, 6 rows

SELECT COUNT(*) FILTER (WHERE sex = 'F') - COUNT(*) FILTER (WHERE sex = 'M') AS difference FROM people
--> difference: number
--> 2 bought, 1 rows

SELECT ABS(COUNT(*) FILTER (WHERE sex = 'F') - COUNT(*) FILTER (WHERE sex = 'M')) AS gap FROM people
--> gap: number
--> 2 bought, 1 rows

SELECT AVG(age) FILTER (WHERE sex = 'F') - AVG(age) FILTER (WHERE sex = 'M') AS gap FROM people
--> gap: number
--> 4 bought, 1 rows

SELECT state, COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / NULLIF(COUNT(*) FILTER (WHERE sex = 'M'), 0) AS ratio FROM people GROUP BY state
--> state: group, ratio: number
--> 2 bought, 5 rows

SELECT state, SUM(age) * 1.0 / COUNT(*) AS mean FROM people GROUP BY state
--> state: group, mean: number
--> 2 bought, 5 rows

SELECT state, CAST(AVG(age) AS INTEGER) AS mean FROM people GROUP BY state
--> state: group, mean: number
--> 2 bought, 5 rows

SELECT state, ROUND(AVG(age), 1) AS mean FROM people GROUP BY state
--> state: group, mean: number
--> 2 bought, 5 rows

SELECT state, GREATEST(COUNT(*), 0) AS n FROM people GROUP BY state
--> state: group, n: number
--> 1 bought, 5 rows

SELECT state, CASE WHEN COUNT(*) > 1000 THEN 'large' ELSE 'small' END AS size_of_state FROM people GROUP BY state
--> state: group, size_of_state: group
--> 1 bought, 5 rows

SELECT state, CASE WHEN COUNT(*) > 100 THEN AVG(age) END AS mean FROM people GROUP BY state
--> state: group, mean: number
--> 2 bought, 5 rows

SELECT 'everyone' AS who, COUNT(*) AS n, 42 AS answer FROM people
--> who: group, n: number, answer: group
--> 1 bought, 1 rows

SELECT LN(COUNT(*)) AS log_n FROM people
--> log_n: number
--> 1 bought, 1 rows

SELECT SQRT(COUNT(*)) FROM people
--> SQRT(COUNT(*)): number
--> 1 bought, 1 rows

SELECT COUNT(*) / 12.0 AS per_month FROM people WHERE YEAR(admitted) = 2020
--> per_month: number
--> 1 bought, 1 rows

SELECT state, COUNT(*) / CASE state WHEN 'Maine' THEN 1.36 WHEN 'Vermont' THEN 0.64 ELSE 7.0 END AS per_million FROM people GROUP BY state
--> state: group, per_million: number
--> 1 bought, 5 rows

SELECT COUNT(*) FROM people WHERE age * 2 > 60
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE age + 5 BETWEEN 20 AND 30
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE age % 2 = 0
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE LOWER(state) LIKE 'new%'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE state ILIKE '%new%'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE state SIMILAR TO 'New .*'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE regexp_matches(state, '^M')
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE state ~ 'e$'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE LEFT(state, 1) = 'M'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT LEFT(state, 3) AS abbreviation, COUNT(*) FROM people GROUP BY abbreviation
--> abbreviation: group, COUNT(*): number
--> 1 bought, 4 rows

SELECT UPPER(state) AS state_name, COUNT(*) FROM people GROUP BY UPPER(state)
--> state_name: group, COUNT(*): number
--> 1 bought, 5 rows

SELECT state BETWEEN 'M' AND 'N' AS early, COUNT(*) FROM people GROUP BY early
--> early: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT COUNT(*) FROM people WHERE state BETWEEN 'Maine' AND 'New York'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE state IN ('Maine', 'Vermont') AND NOT employed
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE employed IS NOT TRUE
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE employed IS DISTINCT FROM TRUE
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE COALESCE(employed, FALSE)
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT_IF(age >= 65) AS seniors FROM people
--> seniors: number
--> 1 bought, 1 rows

SELECT SUM(age >= 65) AS seniors FROM people
--> seniors: number
--> 1 bought, 1 rows

SELECT SUM(IF(age >= 65, 1, 0)) AS seniors FROM people
--> seniors: number
--> 1 bought, 1 rows

SELECT AVG(CASE WHEN employed THEN 1.0 ELSE 0.0 END) AS employment_rate FROM people
--> employment_rate: number
--> 2 bought, 1 rows

SELECT state, AVG(CASE WHEN employed THEN 1.0 ELSE 0.0 END) AS employment_rate FROM people WHERE age BETWEEN 16 AND 64 GROUP BY state
--> state: group, employment_rate: number
--> 2 bought, 5 rows

SELECT COUNT(employed) AS known, COUNT(*) - COUNT(employed) AS unknown FROM people
--> known: number, unknown: number
--> 2 bought, 1 rows

SELECT 100.0 * (COUNT(*) - COUNT(employed)) / COUNT(*) AS pct_missing FROM people
--> pct_missing: number
--> 2 bought, 1 rows

SELECT CASE WHEN age >= 65 AND sex = 'F' THEN 'older women' WHEN age >= 65 THEN 'older others' ELSE 'younger' END AS g, COUNT(*) FROM people GROUP BY g
--> g: group, COUNT(*): number
--> 1 bought, 3 rows

SELECT CASE sex WHEN 'F' THEN 'female' WHEN 'M' THEN 'male' ELSE 'unknown' END AS s, COUNT(*) FROM people GROUP BY s
--> s: group, COUNT(*): number
--> 1 bought, 3 rows

SELECT sex = 'F' AND employed AS working_woman, COUNT(*) FROM people GROUP BY 1
--> working_woman: group, COUNT(*): number
--> 1 bought, 3 rows

SELECT CONCAT(sex, '-', age_group) AS g, COUNT(*) FROM people GROUP BY g
--> g: group, COUNT(*): number
--> 1 bought, 9 rows

SELECT sex || ' ' || state AS g, COUNT(*) FROM people GROUP BY g
--> g: group, COUNT(*): number
--> 1 bought, 15 rows

SELECT AVG(income) FROM people
--> AVG(income): number
--> 2 bought, 1 rows

SELECT SUM(income) FROM people WHERE employed
--> SUM(income): number
--> 1 bought, 1 rows

SELECT income, COUNT(*) FROM people GROUP BY income ORDER BY income
--> income: group, COUNT(*): number
--> 1 bought, 5 rows

SELECT CASE WHEN income < 20000 THEN 'low' ELSE 'high' END AS level, COUNT(*) FROM people GROUP BY level
--> level: group, COUNT(*): number
--> 1 bought, 3 rows

SELECT income >= 20000 AS high, COUNT(*) FROM people GROUP BY high
--> high: group, COUNT(*): number
--> 1 bought, 4 rows

SELECT FLOOR(income / 10000) AS step, COUNT(*) FROM people WHERE income < 20000 GROUP BY step
--> sql.cuts-through-bin, line 1, column 8, at 'FLOOR(income / 10000)'
--> FLOOR(income / 10000) splits the bin of income from 20000 to 50000.
--> Use income itself, or split it at its edges: 0, 10000, 20000, 50000.

SELECT COUNT(*) FROM people WHERE income * 12 >= 240000
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT SUM(CASE WHEN sex = 'F' THEN income END) AS women_income FROM people
--> women_income: number
--> 1 bought, 1 rows

SELECT SUM(income) / COUNT(*) AS per_head FROM people
--> per_head: number
--> 2 bought, 1 rows

SELECT SUM(income) FILTER (WHERE sex = 'F') / SUM(income) AS share_of_women FROM people
--> share_of_women: number
--> 2 bought, 1 rows

WITH adults AS (SELECT * FROM people WHERE age >= 18) SELECT sex, COUNT(*) FROM adults GROUP BY sex
--> sex: group, COUNT(*): number
--> 1 bought, 3 rows

WITH by_state AS (SELECT state, COUNT(*) AS n FROM people GROUP BY state) SELECT state, n FROM by_state WHERE n > 100 ORDER BY n DESC
--> state: group, n: number
--> 1 bought, 5 rows

WITH by_state AS (SELECT state, COUNT(*) AS n, AVG(age) AS mean FROM people GROUP BY state) SELECT state, ROUND(mean, 1) AS mean, n / 1000.0 AS thousands FROM by_state
--> state: group, mean: number, thousands: number
--> 2 bought, 5 rows

SELECT * FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) AS t ORDER BY n DESC LIMIT 5
--> state: group, n: number
--> 1 bought, 5 rows

SELECT t.sex, AVG(t.years) FROM (SELECT sex, age AS years FROM people WHERE employed) AS t GROUP BY t.sex
--> sex: group, AVG(t.years): number
--> 2 bought, 3 rows

SELECT stage, COUNT(*) FROM (SELECT CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS stage FROM people) AS t GROUP BY stage
--> stage: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT state, share FROM (SELECT state, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY state) AS t WHERE share > 0.1
--> state: group, share: number
--> 1 bought, 5 rows

SELECT DISTINCT state FROM people
--> state: group
--> 0 bought, 5 rows

SELECT DISTINCT age_group, sex FROM people
--> age_group: group, sex: group
--> 0 bought, 9 rows

SELECT COUNT(*) FROM main.people AS p WHERE p.age > 30
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT p.state, COUNT(*) AS n FROM people p GROUP BY p.state ORDER BY n
--> state: group, n: number
--> 1 bought, 5 rows

-- women by state
SELECT state, COUNT(*) FROM people WHERE sex = 'F' GROUP BY state;
--> state: group, COUNT(*): number
--> 1 bought, 5 rows

SELECT state, COUNT(*) AS n FROM people GROUP BY ALL
--> state: group, n: number
--> 1 bought, 5 rows

DESCRIBE people
--> column_name: group, column_type: group, values: group
--> 0 bought, 12 rows

SHOW TABLES
--> name: group
--> 0 bought, 1 rows

SELECT * FROM people LIMIT 0
--> age: group, sex: group, income: group, employed: group, admitted: group, state: group, wage: group, hours: group, weight: group
--> 0 bought, 0 rows

SELECT state, COUNT(*) FROM people WHERE age > (60 + 5) GROUP BY state
--> state: group, COUNT(*): number
--> 1 bought, 5 rows

SELECT state, sex, age_group, COUNT(*) FROM people WHERE employed GROUP BY state, sex, age_group
--> state: group, sex: group, age_group: group, COUNT(*): number
--> 1 bought, 45 rows

SELECT age, COUNT(*) FROM people WHERE age BETWEEN 20 AND 29 GROUP BY age ORDER BY age
--> age: group, COUNT(*): number
--> 1 bought, 86 rows

SELECT COUNT(*) FILTER (WHERE age < 18) AS minors, COUNT(*) FILTER (WHERE age >= 18) AS adults FROM people
--> minors: number, adults: number
--> 2 bought, 1 rows

SELECT state, COUNT(*) FILTER (WHERE employed) / COUNT(*) AS rate FROM people GROUP BY state ORDER BY rate DESC LIMIT 1
--> state: group, rate: number
--> 2 bought, 5 rows

SELECT size, AVG(age) FROM people GROUP BY size
--> size: group, AVG(age): number
--> 2 bought, 2 rows

SELECT MIN(age), MAX(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MIN'
--> Unsupported function "MIN".
--> One row alone decides it. Use PERCENTILE_CONT(0.01) WITHIN GROUP (ORDER BY age).
--> Also: Unsupported function "MAX". (line 1, column 18) One row alone decides it. Use PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY age).

SELECT COUNT(DISTINCT state) FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT(DISTINCT state)'
--> COUNT(DISTINCT state) is not supported: one row alone can change it.
--> Count the rows of each value: SELECT state, COUNT(*) ... GROUP BY state.

SELECT * FROM people WHERE age > 80
--> sql.unsupported, line 1, column 8, at '*'
--> SELECT * is not supported: single rows are never returned.
--> Write SELECT COUNT(*). DESCRIBE people lists the columns.

SELECT age, sex FROM people LIMIT 10
--> sql.unsupported, line 1, column 8, at 'age'
--> Column "age" must appear in GROUP BY or inside an aggregate.
--> Add age to GROUP BY, or remove it here.
--> Also: Column "sex" must appear in GROUP BY or inside an aggregate. (line 1, column 13) Add sex to GROUP BY, or remove it here.

SELECT MEDIAN(sex) FROM people
--> sql.unsupported, line 1, column 8, at 'MEDIAN(sex)'
--> Quantiles require a column of numbers or dates, but "sex" has none.
--> Count its values: SELECT sex, COUNT(*) ... GROUP BY sex.

SELECT MODE(state) FROM people
--> sql.unsupported, line 1, column 8, at 'MODE'
--> Unsupported function "MODE".
--> Use SELECT state, COUNT(*) FROM people GROUP BY state ORDER BY COUNT(*) DESC LIMIT 1.

SELECT CORR(age, income) FROM people
--> sql.unsupported, line 1, column 18, at 'income'
--> CORR requires numbers, but "income" is only known by its bins.
--> The curator can declare it as a measure: [measures.income].

SELECT COUNT(*) FROM people WHERE income > 12500
--> sql.cuts-through-bin, line 1, column 35, at 'income > 12500'
--> income > 12500 splits the bin from 10000 to 20000.
--> Write income >= 10000 or income >= 20000.

SELECT FLOOR(income / 5000) AS step, COUNT(*) FROM people GROUP BY step
--> sql.cuts-through-bin, line 1, column 8, at 'FLOOR(income / 5000)'
--> FLOOR(income / 5000) splits the bin of income from 0 to 10000.
--> Use income itself, or split it at its edges: 0, 10000, 20000, 50000.

SELECT COUNT(*) FROM people WHERE admitted = DATE '2020-05-17'
--> sql.cuts-through-bin, line 1, column 35, at "admitted = DATE '2020-05-17'"
--> admitted = DATE '2020-05-17' splits the bin from 2020-05-01 to 2020-06-01.
--> Write admitted >= DATE '2020-05-01' AND admitted < DATE '2020-06-01'.

SELECT a.state, COUNT(*) FROM people a JOIN people b ON a.age = b.age GROUP BY a.state
--> sql.unsupported, line 1, column 40, at 'JOIN'
--> Joins are not supported.
--> Query one table, and compare its groups by FILTER (WHERE ...).

SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)
--> sql.unsupported, line 1, column 49, at 'AVG(age) FROM people'
--> A subquery is only supported in FROM.
--> Ask it on its own, and write its answer here as a number.

SELECT AVG(n) FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) AS t
--> sql.unsupported, line 1, column 8, at 'AVG(n) FROM (SELECT state, COUNT(*) AS n FROM people GROU...'
--> The result of GROUP BY cannot be aggregated again.
--> Add AVG(COUNT(*)) OVER () to the SELECT that has GROUP BY.

SELECT state, COUNT(*) FROM people GROUP BY state UNION ALL SELECT 'all', COUNT(*) FROM people
--> state: group, COUNT(*): number
--> 2 bought, 6 rows

SELECT state, LAG(COUNT(*)) OVER (ORDER BY state) FROM people GROUP BY state
--> sql.unsupported, line 1, column 15, at 'LAG'
--> Unsupported function "LAG".
--> Use SUM(COUNT(*)) OVER (ORDER BY ... ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING): 0 where there is no such row.

SELECT COUNT(*) FROM people WHERE admitted > CURRENT_DATE
--> sql.unsupported, line 1, column 46, at 'CURRENT_DATE'
--> The current time is not supported: the same question must mean the same tomorrow.
--> Write a date as DATE '2024-12-31'.

SELECT STRING_AGG(state, ', ') FROM people
--> sql.unsupported, line 1, column 8, at 'STRING_AGG'
--> Unsupported function "STRING_AGG".
--> Single values are never returned. Count its values: SELECT state, COUNT(*) FROM people GROUP BY state.

SELECT COUNT(*) FROM people WHERE agee > 30
--> sql.unknown-name, line 1, column 35, at 'agee'
--> Unknown column "agee".
--> Did you mean "age" or "wage"?
--> suggestion: agee -> age

SELECT COUNT(*) FROM people WHERE state = 'Main'
--> sql.unknown-name, line 1, column 35, at "state = 'Main'"
--> Unknown value 'Main' of column "state".
--> Did you mean 'Maine'?
--> suggestion: 'Main' -> 'Maine'

SELECT ROUNDD(AVG(age), 1) FROM people
--> sql.unsupported, line 1, column 8, at 'ROUNDD'
--> Unsupported function "ROUNDD".
--> Did you mean ROUND?

SELECT age, sex, state, admitted, employed, COUNT(*) FROM people GROUP BY ALL
--> query.too-complex, line 1, column 8, at 'age, sex, state, admitted, employed, COUNT(*) FROM people'
--> The query asks for 92,880 numbers; the limit is 65,536.
--> Group by fewer columns, or by declared bins.

SELECT STDDEV(wage) AS sd, AVG(wage) AS mean FROM people
--> sd: number, mean: number
--> 3 bought, 1 rows

SELECT state, STDDEV_POP(wage) / AVG(wage) AS variation FROM people GROUP BY state
--> state: group, variation: number
--> 3 bought, 5 rows

SELECT employed, VARIANCE(wage) FROM people WHERE age >= 18 GROUP BY ROLLUP (employed)
--> employed: group, VARIANCE(wage): number
--> 3 bought, 4 rows

SELECT SUM(wage * wage), AVG(POWER(wage, 2)) FROM people
--> SUM(wage * wage): number, AVG(POWER(wage, 2)): number
--> 3 bought, 1 rows

SELECT CORR(wage, hours) AS r FROM people WHERE employed
--> r: number
--> 6 bought, 1 rows

SELECT sex, CORR(wage, hours) AS r, REGR_SLOPE(wage, hours) AS slope, REGR_INTERCEPT(wage, hours) AS base FROM people GROUP BY sex
--> sex: group, r: number, slope: number, base: number
--> 6 bought, 3 rows

SELECT COVAR_POP(wage, hours), COVAR_SAMP(wage, hours), REGR_R2(wage, hours), REGR_COUNT(wage, hours) FROM people
--> COVAR_POP(wage, hours): number, COVAR_SAMP(wage, hours): number, REGR_R2(wage, hours): number, REGR_COUNT(wage, hours): number
--> 6 bought, 1 rows

SELECT SUM(wage * hours) AS payroll FROM people WHERE employed
--> payroll: number
--> 4 bought, 1 rows

SELECT REGR_SLOPE(wage, age) AS per_year FROM people WHERE age BETWEEN 18 AND 65
--> per_year: number
--> 5 bought, 1 rows

SELECT CORR(age, wage) FROM people
--> CORR(age, wage): number
--> 6 bought, 1 rows

SELECT STDDEV(income) FROM people
--> STDDEV(income): number
--> 3 bought, 1 rows

SELECT state, SUM(wage) AS total, AVG(wage) AS mean FROM people GROUP BY CUBE (state, sex)
--> state: group, total: number, mean: number
--> 2 bought, 24 rows

SELECT STDDEV(weight) FROM people
--> sql.unsupported, line 1, column 8, at 'STDDEV(weight)'
--> STDDEV(weight) needs the square of the measure "weight", which is not declared.
--> The curator can declare it: square = true in [measures.weight].

SELECT CORR(weight, hours) FROM people
--> sql.unsupported, line 1, column 8, at 'CORR(weight, hours)'
--> CORR(weight, hours) needs the product of "weight" and "hours", which is not declared.
--> The curator can declare it: products = ["hours"] in [measures.weight].

SELECT COALESCE(state, 'Total') AS state, COUNT(*) AS n FROM people GROUP BY ROLLUP (state)
--> state: group, n: number
--> 1 bought, 6 rows

SELECT YEAR(admitted) AS y, QUARTER(admitted) AS q, COUNT(*) AS n FROM people GROUP BY ROLLUP (y, q) HAVING YEAR(admitted) IS NOT NULL
--> y: group, q: group, n: number
--> 1 bought, 11 rows

SELECT SUM(CASE WHEN sex = 'F' THEN wage ELSE 0 END) AS wages_of_women FROM people
--> wages_of_women: number
--> 2 bought, 1 rows

SELECT SPLIT_PART(state, ' ', 1) AS first_word, COUNT(*) AS n FROM people GROUP BY first_word ORDER BY n DESC
--> first_word: group, n: number
--> 1 bought, 4 rows

SELECT COUNT(*) FROM people WHERE STRPOS(state, 'New') = 1
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE state ~ '^(New|Old) [A-Z][a-z]{3,}$'
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT MEAN(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MEAN'
--> Unsupported function "MEAN".
--> Use AVG(age).

SELECT AVG(admitted) FROM people
--> sql.unsupported, line 1, column 12, at 'admitted'
--> Column "admitted" is not numeric.
--> Use MEDIAN(admitted).

SELECT AVG(LN(wage)) FROM people
--> sql.unsupported, line 1, column 12, at 'LN(wage)'
--> Sums of computed measures are not supported.
--> Sum the measure itself, and compute with the result: SUM(wage) / COUNT(*).

SELECT state, COUNT(*) AS n FROM people WHERE n > 100 GROUP BY state
--> sql.unsupported, line 1, column 47, at 'n'
--> n is COUNT(*), which WHERE cannot use.
--> Write its condition after GROUP BY: HAVING n ...

SELECT state, sex, COUNT(*) FROM people GROUP BY state, sex WITH ROLLUP
--> sql.unsupported, line 1, column 50, at 'state, sex'
--> WITH ROLLUP is not supported.
--> Write GROUP BY ROLLUP (...).

SELECT state, COUNT(*) FROM people GROUP BY state UNION SELECT 'all', COUNT(*) FROM people
--> sql.unsupported, line 1, column 51, at 'UNION'
--> UNION without ALL is not supported: noisy rows are never the same.
--> Write UNION ALL.

SELECT EXTRACT(HOUR FROM admitted) AS hour, COUNT(*) FROM people GROUP BY hour
--> sql.unsupported, line 1, column 8, at 'EXTRACT(HOUR FROM admitted)'
--> "HOUR" is not a part of a date.
--> Use one of year, quarter, month, week, day, dow or doy.

SELECT EXTRACT(DOW FROM admitted) AS weekday, COUNT(*) FROM people GROUP BY weekday
--> sql.cuts-through-bin, line 1, column 8, at 'EXTRACT(DOW FROM admitted)'
--> EXTRACT(DOW FROM admitted) splits the bin of admitted from 2020-01-01 to 2020-02-01.
--> Use admitted itself, or split it at its edges: 2020-01-01, 2020-02-01, 2020-03-01, 2020-04-01, 2020-05-01, 2020-06-01 and 19 more.

SELECT COUNT(*) FROM people WHERE admitted LIKE '2021%'
--> sql.unsupported, line 1, column 35, at "admitted LIKE '2021%'"
--> LIKE requires text, but column "admitted" is not text.
--> Compare its year: YEAR(admitted) = 2021.

SELECT ISNULL(employed, FALSE) AS e, COUNT(*) FROM people GROUP BY e
--> sql.unsupported, line 1, column 8, at 'ISNULL'
--> Unsupported function "ISNULL".
--> Write employed IS NULL, or COALESCE in place of ISNULL.

SELECT DATE_FORMAT(admitted, '%Y-%m') AS month, COUNT(*) FROM people GROUP BY month
--> sql.unsupported, line 1, column 8, at 'DATE_FORMAT'
--> Unsupported function "DATE_FORMAT".
--> Use date_trunc('month', admitted), YEAR(admitted) or MONTH(admitted).

SELECT REGEXP_EXTRACT(state, '^[A-Z]') AS letter, COUNT(*) FROM people GROUP BY letter
--> sql.unsupported, line 1, column 8, at 'REGEXP_EXTRACT'
--> Unsupported function "REGEXP_EXTRACT".
--> Use SPLIT_PART(state, '.', 1), SUBSTRING(state, 1, 3) or REPLACE(state, 'a', 'b').
