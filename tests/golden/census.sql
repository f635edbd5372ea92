SELECT age, sex, COUNT(*) AS n FROM people GROUP BY age, sex ORDER BY age, sex
--> age: group, sex: group, n: number
--> 1 bought, 172 rows

SELECT COUNT(*) FILTER (WHERE age < 15 OR age >= 65) * 100.0 / COUNT(*) FILTER (WHERE age BETWEEN 15 AND 64) AS dependency_ratio FROM people
--> dependency_ratio: number
--> 2 bought, 1 rows

SELECT COUNT(*) FILTER (WHERE age >= 65) * 1.0 / COUNT(*) FILTER (WHERE age < 15) AS ageing_index FROM people
--> ageing_index: number
--> 2 bought, 1 rows

SELECT 100.0 * COUNT(*) FILTER (WHERE sex = 'male') / NULLIF(COUNT(*) FILTER (WHERE sex = 'female'), 0) AS men_per_100_women FROM people
--> men_per_100_women: number
--> 2 bought, 1 rows

SELECT age / 5 * 5 AS band, COUNT(*) FROM people GROUP BY band ORDER BY band
--> band: group, COUNT(*): number
--> 1 bought, 86 rows

SELECT FLOOR(age / 5) * 5 AS band, SUM(CASE WHEN sex = 'male' THEN 1 ELSE 0 END) AS men, SUM(CASE WHEN sex = 'female' THEN 1 ELSE 0 END) AS women FROM people GROUP BY band ORDER BY band
--> band: group, men: number, women: number
--> 2 bought, 18 rows

SELECT FLOOR(age / 5) * 5 AS band, -COUNT(*) FILTER (WHERE sex = 'male') AS men, COUNT(*) FILTER (WHERE sex = 'female') AS women FROM people GROUP BY 1 ORDER BY 1
--> band: group, men: number, women: number
--> 2 bought, 18 rows

SELECT CONCAT(FLOOR(age / 10) * 10, '-', FLOOR(age / 10) * 10 + 9) AS band, COUNT(*) AS n FROM people GROUP BY band
--> band: group, n: number
--> 1 bought, 9 rows

SELECT MEDIAN(age), AVG(age), STDDEV(age) FROM people
--> MEDIAN(age): number, AVG(age): number, STDDEV(age): number
--> 4 bought, 1 rows

SELECT sex, MEDIAN(age) FROM people GROUP BY sex
--> sex: group, MEDIAN(age): number
--> 1 bought, 2 rows

SELECT marital, AVG(age) AS mean_age, COUNT(*) AS n FROM people GROUP BY marital HAVING COUNT(*) > 1000 ORDER BY mean_age DESC
--> marital: group, mean_age: number, n: number
--> 2 bought, 5 rows

SELECT marital, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM people WHERE age >= 15 GROUP BY marital ORDER BY n DESC
--> marital: group, n: number, pct: number
--> 1 bought, 5 rows

SELECT age, 100.0 * AVG(CASE WHEN marital = 'married' THEN 1 ELSE 0 END) AS pct_married FROM people WHERE age BETWEEN 20 AND 40 GROUP BY age
--> age: group, pct_married: number
--> 2 bought, 86 rows

SELECT sex, 100 * AVG(CASE WHEN moved THEN 1.0 ELSE 0.0 END) AS pct_moved FROM people GROUP BY sex
--> sex: group, pct_moved: number
--> 2 bought, 2 rows

SELECT AVG(moved::INT) FROM people
--> AVG(moved::INT): number
--> 2 bought, 1 rows

SELECT COUNT_IF(moved) / COUNT(*) AS share_moved FROM people
--> share_moved: number
--> 2 bought, 1 rows

SELECT race, COUNT(*) FROM people GROUP BY race ORDER BY COUNT(*) DESC LIMIT 3
--> race: group, COUNT(*): number
--> 1 bought, 7 rows

SELECT race, schooling, COUNT(*) AS n FROM people WHERE age >= 25 GROUP BY ROLLUP (race, schooling)
--> race: group, schooling: group, n: number
--> 1 bought, 78 rows

SELECT race, schooling, COUNT(*) AS n FROM people WHERE age >= 25 GROUP BY CUBE (race, schooling)
--> race: group, schooling: group, n: number
--> 1 bought, 88 rows

SELECT schooling, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY schooling) AS cumulative FROM people WHERE age >= 25 GROUP BY schooling
--> schooling: group, n: number, cumulative: number
--> 1 bought, 10 rows

SELECT CASE WHEN age < 18 THEN '0-17' WHEN age < 65 THEN '18-64' ELSE '65+' END AS life_stage, sex, COUNT(*) AS n FROM people GROUP BY 1, 2 ORDER BY 1, 2
--> life_stage: group, sex: group, n: number
--> 1 bought, 6 rows

SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) AS q1, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) AS q3 FROM people WHERE marital = 'widowed'
--> q1: number, q3: number
--> 1 bought, 1 rows

SELECT race, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) AS p90 FROM people GROUP BY race
--> race: group, p90: number
--> 1 bought, 7 rows

SELECT MIN(age), MAX(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MIN'
--> Unsupported function "MIN".
--> One row alone decides it. Use PERCENTILE_CONT(0.01) WITHIN GROUP (ORDER BY age).
--> Also: Unsupported function "MAX". (line 1, column 18) One row alone decides it. Use PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY age).

SELECT COUNT(DISTINCT race) FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT(DISTINCT race)'
--> COUNT(DISTINCT race) is not supported: one row alone can change it.
--> Count the rows of each value: SELECT race, COUNT(*) ... GROUP BY race.

SELECT DISTINCT marital FROM people
--> marital: group
--> 0 bought, 5 rows

SELECT * FROM people LIMIT 10
--> sql.unsupported, line 1, column 8, at '*'
--> SELECT * is not supported: single rows are never returned.
--> Write SELECT COUNT(*). DESCRIBE people lists the columns.

SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY COUNT(*) DESC LIMIT 1
--> age: group, COUNT(*): number
--> 1 bought, 86 rows

SELECT MODE(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MODE'
--> Unsupported function "MODE".
--> Use SELECT age, COUNT(*) FROM people GROUP BY age ORDER BY COUNT(*) DESC LIMIT 1.

SELECT a.rate - b.rate FROM (SELECT AVG(age) AS rate FROM people WHERE sex = 'male') a, (SELECT AVG(age) AS rate FROM people WHERE sex = 'female') b
--> sql.unsupported, line 1, column 97, at "AVG(age) AS rate FROM people WHERE sex = 'female') b"
--> Joins are not supported.
--> Query one table, and compare its groups by FILTER (WHERE ...).

SELECT AVG(age) FILTER (WHERE sex = 'female') - AVG(age) FILTER (WHERE sex = 'male') AS gap FROM people
--> gap: number
--> 4 bought, 1 rows

WITH adults AS (SELECT * FROM people WHERE age >= 18) SELECT schooling, COUNT(*) AS n FROM adults GROUP BY schooling ORDER BY n DESC
--> schooling: group, n: number
--> 1 bought, 10 rows

WITH by_race AS (SELECT race, COUNT(*) AS n FROM people GROUP BY race) SELECT race, n, 100.0 * n / SUM(n) OVER () AS pct FROM by_race ORDER BY pct DESC
--> race: group, n: number, pct: number
--> 1 bought, 7 rows

WITH t AS (SELECT race, COUNT(*) AS n FROM people GROUP BY race) SELECT MAX(n) FROM t
--> sql.unsupported, line 1, column 73, at 'MAX'
--> Unsupported function "MAX".
--> Of the rows of a result, write ORDER BY n DESC LIMIT 1.

SELECT race, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM people GROUP BY race
--> race: group, n: number, place: number
--> 1 bought, 7 rows

SELECT race FROM people GROUP BY race HAVING 100.0 * COUNT(*) FILTER (WHERE moved) / COUNT(*) > 10
--> race: group
--> 2 bought, 7 rows

SELECT 'men' AS who, COUNT(*) AS n FROM people WHERE sex = 'male' UNION ALL SELECT 'women', COUNT(*) FROM people WHERE sex = 'female'
--> who: group, n: number
--> 2 bought, 2 rows

SELECT age, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY age) AS change FROM people GROUP BY age
--> sql.unsupported, line 1, column 24, at 'LAG'
--> Unsupported function "LAG".
--> Use SUM(COUNT(*)) OVER (ORDER BY ... ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING): 0 where there is no such row.

SELECT age, AVG(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS smooth FROM people GROUP BY age
--> age: group, smooth: number
--> 1 bought, 86 rows

SELECT schooling, COUNT(*) FILTER (WHERE sex = 'female') - COUNT(*) FILTER (WHERE sex = 'male') AS gap FROM people GROUP BY schooling ORDER BY ABS(gap) DESC
--> schooling: group, gap: number
--> 2 bought, 10 rows

SELECT COUNT(*) FROM people WHERE marital NOT IN ('married', 'widowed') AND age >= 30 AND NOT moved
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT COUNT(*) FROM people WHERE marital <> 'never married' AND age < 18
--> COUNT(*): number
--> 1 bought, 1 rows

SELECT schooling, sex, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY sex), 2) AS pct FROM people WHERE age >= 25 GROUP BY schooling, sex ORDER BY sex, pct DESC
--> schooling: group, sex: group, pct: number
--> 1 bought, 20 rows

SELECT sex, SUM(age) AS person_years FROM people GROUP BY sex
--> sex: group, person_years: number
--> 1 bought, 2 rows

SELECT VARIANCE(age), STDDEV_POP(age) FROM people WHERE sex = 'female'
--> VARIANCE(age): number, STDDEV_POP(age): number
--> 3 bought, 1 rows

SELECT CASE WHEN race = 'White' THEN 'White' ELSE 'Other' END AS r, AVG(age) FROM people GROUP BY r
--> r: group, AVG(age): number
--> 2 bought, 1 rows

SELECT CASE WHEN schooling LIKE '%degree%' THEN 'degree' ELSE 'none' END AS s, COUNT(*) FROM people GROUP BY s
--> s: group, COUNT(*): number
--> 1 bought, 1 rows

SELECT UPPER(sex) AS sex, COUNT(*) FROM people GROUP BY UPPER(sex)
--> sex: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT IF(age >= 65, 'old', 'young') AS g, COUNT(*) AS n FROM people GROUP BY g
--> g: group, n: number
--> 1 bought, 2 rows

SELECT TOP 5 age, COUNT(*) FROM people GROUP BY age
--> sql.syntax, line 1, column 8, at 'TOP'
--> TOP is not supported.
--> Write LIMIT 5 at the end.

SELECT age, COUNT(*) FROM people GROUP BY age QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) <= 5
--> sql.unsupported, line 1, column 47, at 'QUALIFY'
--> QUALIFY is not supported.
--> Write the window after OVER, and choose rows afterwards: SELECT * FROM (SELECT ..., RANK() OVER (ORDER BY COUNT(*) DESC) AS place ...) AS t WHERE place <= 5.

SELECT SQRT(COUNT(*)), LN(COUNT(*)) FROM people
--> SQRT(COUNT(*)): number, LN(COUNT(*)): number
--> 1 bought, 1 rows

SELECT ROUND(AVG(age), 1) AS mean, ROUND(AVG(age) - 1.96 * STDDEV(age) / SQRT(COUNT(*)), 2) AS low FROM people
--> mean: number, low: number
--> 3 bought, 1 rows

SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS share FROM people WHERE age > 80
--> sql.unsupported, line 1, column 33, at 'COUNT(*) FROM people'
--> A subquery is only supported in FROM.
--> For a share, write COUNT(*) FILTER (WHERE ...) / COUNT(*).

SELECT sex, COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people) GROUP BY sex
--> sql.unsupported, line 1, column 54, at 'AVG(age) FROM people'
--> A subquery is only supported in FROM.
--> Ask it on its own, and write its answer here as a number.

SELECT age, sex, COUNT(*) FROM people WHERE age BETWEEN 18 AND 24 GROUP BY GROUPING SETS ((age, sex), (age), ())
--> age: group, sex: group, COUNT(*): number
--> 1 bought, 259 rows

SELECT COALESCE(race, 'all') AS race, COUNT(*) FROM people GROUP BY ROLLUP (race)
--> race: group, COUNT(*): number
--> 1 bought, 8 rows

SELECT schooling AS education, ROUND(AVG(age), 1) FROM people WHERE education IS NOT NULL GROUP BY education
--> education: group, ROUND(AVG(age), 1): number
--> 2 bought, 10 rows

SELECT EXISTS(SELECT 1 FROM people WHERE age = 85)
--> sql.unsupported, line 1, column 8, at 'EXISTS'
--> A subquery is only supported in FROM.
--> Count the rows that exist: SELECT COUNT(*) FROM ... WHERE ...

SELECT COUNT(*) AS n, n / 100 AS hundreds FROM people
--> n: number, hundreds: number
--> 1 bought, 1 rows

SELECT NTILE(4) OVER (ORDER BY age) AS quartile, COUNT(*) FROM people GROUP BY quartile
--> sql.unsupported, line 1, column 8, at 'NTILE'
--> Unsupported function "NTILE".
--> Use RANK() OVER (ORDER BY COUNT(*) DESC), or the quantiles of a column.

SELECT width_bucket(age, 0, 80, 8) AS b, COUNT(*) FROM people GROUP BY b ORDER BY b
--> b: group, COUNT(*): number
--> 1 bought, 9 rows

SELECT histogram(age) FROM people
--> sql.unsupported, line 1, column 8, at 'histogram'
--> Unsupported function "histogram".
--> Count its values: SELECT age, COUNT(*) FROM people GROUP BY age.

SELECT race, ROUND(100.0 * COUNT(*) FILTER (WHERE schooling = 'bachelor') / COUNT(*), 1) FROM people WHERE age >= 25 GROUP BY race
--> race: group, ROUND(100.0 * COUNT(*) FILTER (WHERE schooling = 'bachelor') / COUNT(*), 1): number
--> 2 bought, 7 rows

SELECT sex, QUANTILE_CONT(age, [0.1, 0.5, 0.9]) FROM people GROUP BY sex
--> sex: group, QUANTILE_CONT_0.1: number, QUANTILE_CONT_0.5: number, QUANTILE_CONT_0.9: number
--> 1 bought, 2 rows

SELECT age % 10 AS last_digit, COUNT(*) FROM people GROUP BY last_digit ORDER BY last_digit
--> last_digit: group, COUNT(*): number
--> 1 bought, 10 rows

SELECT SUM(CASE WHEN age % 5 = 0 THEN 1 END) * 5.0 / COUNT(*) AS whipple FROM people WHERE age BETWEEN 23 AND 62
--> whipple: number
--> 2 bought, 1 rows

SELECT marital, sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY marital, sex PIVOT
--> sql.unsupported, line 1, column 81, at 'PIVOT'
--> PIVOT is not supported.
--> Write one COUNT(*) FILTER (WHERE ...) for each column of the result.

SELECT EXP(AVG(LN(age))) FROM people WHERE age > 0
--> EXP(AVG(LN(age))): number
--> 2 bought, 1 rows

SELECT AVG(age) AS 'mean age' FROM people
--> sql.syntax, line 1, column 20, at "'mean age'"
--> Unexpected "mean age".
--> Strings are values. Write names in double quotes: "mean age".

SELECT race, 1000.0 * COUNT(*) FILTER (WHERE moved) / COUNT(*) AS rate_per_1000 FROM people GROUP BY race ORDER BY 2 DESC
--> race: group, rate_per_1000: number
--> 2 bought, 7 rows

SELECT SUM(moved) FROM people
--> SUM(moved): number
--> 1 bought, 1 rows

SELECT AVG(moved) FROM people
--> AVG(moved): number
--> 2 bought, 1 rows

SELECT COUNT(moved = TRUE) FROM people
--> COUNT(moved = TRUE): number
--> 1 bought, 1 rows

SELECT age BETWEEN 18 AND 64 AS working_age, COUNT(*) FROM people GROUP BY working_age
--> working_age: group, COUNT(*): number
--> 1 bought, 2 rows

SELECT age, COUNT(*) - SUM(COUNT(*)) OVER (ORDER BY age ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS smooth FROM people GROUP BY age
--> age: group, smooth: number
--> 1 bought, 86 rows

SELECT age, SUM(COUNT(*)) OVER (ORDER BY age DESC ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS smooth FROM people GROUP BY age
--> age: group, smooth: number
--> 1 bought, 86 rows

SELECT age, AVG(COUNT(*)) OVER (ORDER BY age) AS smooth FROM people GROUP BY age
--> age: group, smooth: number
--> 1 bought, 86 rows

SELECT age, AVG(COUNT(*)) OVER (ORDER BY age ROWS 3 PRECEDING) AS smooth FROM people GROUP BY age
--> age: group, smooth: number
--> 1 bought, 86 rows

SELECT COUNT(*) FILTER (WHERE age < 15 OR age >= 65) * 100.0 / COUNT(*) FILTER (WHERE age BETWEEN 15 AND 64) AS dependency_ratio FROM people
--> dependency_ratio: number
--> 2 bought, 1 rows

SELECT marital, 100.0 * SUM(CASE WHEN age >= 65 THEN 1 ELSE 0 END) / SUM(CASE WHEN age < 15 THEN 1 ELSE 0 END) AS ageing_index FROM people GROUP BY marital
--> marital: group, ageing_index: number
--> 2 bought, 5 rows

SELECT age // 5 * 5 AS five, COUNT(*) FILTER (WHERE sex = 'female') AS women, COUNT(*) FILTER (WHERE sex = 'male') AS men FROM people GROUP BY five ORDER BY five
--> five: group, women: number, men: number
--> 2 bought, 18 rows

SELECT COALESCE(race, 'Total') AS race, COUNT(*) FROM people GROUP BY ROLLUP (race)
--> race: group, COUNT(*): number
--> 1 bought, 8 rows

SELECT GROUPING(race), race, COUNT(*) FROM people GROUP BY ROLLUP (race)
--> sql.unsupported, line 1, column 8, at 'GROUPING'
--> Unsupported function "GROUPING".
--> In the row of a subtotal the column is NULL: write race IS NULL.

SELECT race, race IS NULL AS total, COUNT(*) FROM people GROUP BY ROLLUP (race)
--> race: group, total: group, COUNT(*): number
--> 1 bought, 8 rows

SELECT AVG(age) AS mean_age, SQRT(VARIANCE(age) / COUNT(*)) AS standard_error FROM people
--> mean_age: number, standard_error: number
--> 3 bought, 1 rows

SELECT QUANTILE_CONT(age, 0.9) / QUANTILE_CONT(age, 0.1) AS p90_p10 FROM people WHERE age >= 18
--> p90_p10: number
--> 1 bought, 1 rows

SELECT race, RANK() OVER (ORDER BY AVG(age) DESC) AS place FROM people GROUP BY race
--> race: group, place: number
--> 2 bought, 7 rows

SELECT 1 - AVG(moved::INT) AS stayed FROM people WHERE age BETWEEN 15 AND 74
--> stayed: number
--> 2 bought, 1 rows

WITH adults AS (SELECT * FROM people WHERE age >= 18), movers AS (SELECT * FROM adults WHERE moved) SELECT schooling, COUNT(*) FROM movers GROUP BY schooling
--> schooling: group, COUNT(*): number
--> 1 bought, 10 rows

WITH w AS (SELECT race, AVG(age) AS mean_age FROM people GROUP BY race) SELECT race, mean_age FROM w WHERE mean_age > 38 ORDER BY mean_age
--> race: group, mean_age: number
--> 2 bought, 7 rows

SELECT COUNT(*) FROM people WHERE (sex, marital) IN (('female', 'widowed'), ('male', 'divorced'))
--> sql.unsupported, line 1, column 36, at 'sex, marital'
--> (sex, marital) are several columns at once.
--> Compare them one by one, with AND and OR.

SELECT SKEWNESS(age) FROM people
--> sql.unsupported, line 1, column 8, at 'SKEWNESS'
--> Unsupported function "SKEWNESS".
--> Count its values: SELECT age, COUNT(*) FROM people GROUP BY age.

SELECT schooling, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM people) AS pct FROM people GROUP BY schooling
--> sql.unsupported, line 1, column 46, at 'COUNT(*) FROM people'
--> A subquery is only supported in FROM.
--> For shares of the total, write COUNT(*) / SUM(COUNT(*)) OVER ().

SELECT 'under 18' AS part, COUNT(*) FROM people WHERE age < 18 UNION ALL SELECT '18 and over', COUNT(*) FROM people WHERE age >= 18
--> part: group, COUNT(*): number
--> 2 bought, 2 rows

SELECT race, schooling, COUNT(*) AS n, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY race) AS row_percent FROM people GROUP BY race, schooling
--> race: group, schooling: group, n: number, row_percent: number
--> 1 bought, 70 rows
