SELECT COUNT(*) FROM people
--> COUNT(*) = Aggregate
--> everything

select count ( * ) as n from PEOPLE;
--> n = Aggregate
--> everything

SELECT COUNT(*) FROM people AS p WHERE p.age < 18 AND p.sex = 'F'
--> COUNT(*) = Aggregate
--> age[0..17] x sex[F]

SELECT COUNT(*) FROM people WHERE Age >= 20 AND "age" < 30
--> COUNT(*) = Aggregate
--> age[20..29]

SELECT COUNT(*) FROM people WHERE NOT (age < 20 OR 29 < age)
--> COUNT(*) = Aggregate
--> age[20..29]

SELECT COUNT(*) FROM people WHERE age BETWEEN 2 * 10 AND 60 / 2 - 1
--> COUNT(*) = Aggregate
--> age[20..29]

SELECT COUNT(*) FROM people WHERE age IN (1, 3, 3, -5, 1000)
--> COUNT(*) = Aggregate
--> age[1, 3]

SELECT COUNT(*) FROM people WHERE age > 200
--> COUNT(*) = Aggregate
--> nothing

SELECT COUNT(*) FROM people WHERE age <> 5.5
--> COUNT(*) = Aggregate
--> everything

SELECT COUNT(*) FROM people WHERE income >= 10000 AND income < 50000
--> COUNT(*) = Aggregate
--> income[[10000, 20000)..[20000, 50000)]

SELECT COUNT(*) FROM people WHERE income = '[10000, 20000)'
--> COUNT(*) = Aggregate
--> income[[10000, 20000)]

SELECT COUNT(*) FROM people WHERE income = 'out of range'
--> COUNT(*) = Aggregate
--> income[out of range]

SELECT COUNT(*) FROM people WHERE NOT income < 20000
--> COUNT(*) = Aggregate
--> income[[20000, 50000)]

SELECT COUNT(*) FROM people WHERE income = 10000000
--> COUNT(*) = Aggregate
--> nothing

SELECT COUNT(*) FROM people WHERE income IS NULL OR income >= 20000
--> COUNT(*) = Aggregate
--> income[[20000, 50000), None]

SELECT COUNT(*) FROM people WHERE sex = 'other'
--> COUNT(*) = Aggregate
--> sex[other]

SELECT COUNT(*) FROM people WHERE sex <> 'F'
--> COUNT(*) = Aggregate
--> sex[M..other]

SELECT COUNT(*) FROM people WHERE sex NOT IN ('F', NULL)
--> COUNT(*) = Aggregate
--> nothing

SELECT COUNT(*) FROM people WHERE state LIKE 'New%' AND state NOT LIKE '%!_%' ESCAPE '!'
--> COUNT(*) = Aggregate
--> state[New Hampshire..New York]

SELECT COUNT(*) FROM people WHERE employed
--> COUNT(*) = Aggregate
--> employed[True]

SELECT COUNT(*) FROM people WHERE NOT employed
--> COUNT(*) = Aggregate
--> employed[False]

SELECT COUNT(*) FROM people WHERE employed IS NOT TRUE
--> COUNT(*) = Aggregate
--> employed[False, None]

SELECT COUNT(*) FROM people WHERE employed = FALSE OR employed IS NULL
--> COUNT(*) = Aggregate
--> employed[False, None]

SELECT COUNT(*) FROM people WHERE (age > 65 AND employed) IS NULL
--> COUNT(*) = Aggregate
--> age[66..85] x employed[None]

SELECT COUNT(*) FROM people WHERE admitted >= DATE '2020-03-01' AND admitted <= '2020-05-31'
--> COUNT(*) = Aggregate
--> admitted[2020-03..2020-05]

SELECT COUNT(*) FROM people WHERE admitted BETWEEN '2021-01-01'::DATE AND CAST('2021-12-31' AS DATE)
--> COUNT(*) = Aggregate
--> admitted[2021-01..2021-12]

SELECT COUNT(*) FROM people WHERE admitted = '2020-07' OR admitted_year = '2021'
--> COUNT(*) = Aggregate
--> admitted[2020-07, 2021-01..2021-12]

SELECT COUNT(*) FROM people WHERE age_group IN ('0-17', '65-85') AND size = 'large'
--> COUNT(*) = Aggregate
--> age[0..17, 65..85] x state[Massachusetts, New York]

SELECT COUNT(*) FROM people WHERE 1 = 1 AND age = 7 OR 1 > 2
--> COUNT(*) = Aggregate
--> age[7]

SELECT COUNT(*) FROM people WHERE age = NULL
--> COUNT(*) = Aggregate
--> nothing

SELECT COUNT(*) FROM people WHERE sex = 'F' OR employed
--> COUNT(*) = Aggregate
--> sex[F] + sex[M..other] x employed[True]

SELECT COUNT(income), COUNT(1), COUNT(sex) FROM people
--> COUNT(income) = Aggregate, COUNT(1) = Aggregate, COUNT(sex) = Aggregate
--> income[[0, 10000)..out of range]
--> everything

SELECT COUNT(*) FILTER (WHERE sex = 'F') AS women, COUNT(*) FILTER (WHERE age < 18) AS minors
FROM people
WHERE employed
--> women = Aggregate, minors = Aggregate
--> sex[F] x employed[True]
--> age[0..17] x employed[True]

SELECT SUM(age), AVG(age), COUNT(*) FROM people
--> SUM(age) = Aggregate, AVG(age) = Average, COUNT(*) = Aggregate
--> age[1, 2 * 2, 3 * 3, 4 * 4, ...]
--> everything

SELECT SUM(income), AVG(income) FILTER (WHERE sex = 'F') FROM people
--> SUM(income) = Aggregate, AVG(income) FILTER (WHERE sex = 'F') = Average
--> 5000 x income[[0, 10000), 3 * [10000, 20000), 7 * [20000, 50000)]
--> 5000 x sex[F] x income[[0, 10000), 3 * [10000, 20000), 7 * [20000, 50000)]
--> sex[F] x income[[0, 10000)..[20000, 50000)]

SELECT SUM(employed) FROM people
--> SUM(employed) = Aggregate
--> employed[True]

SELECT SUM(CASE WHEN age < 18 THEN 0.5 WHEN sex = 'F' THEN 1 ELSE -2 END) AS points FROM people
--> points = Aggregate
--> 1/2 x age[0..17] + 1/2 x age[2 * 18..85] x sex[F, -2 * M..other]

SELECT AVG(CASE WHEN age < 18 THEN 1 WHEN age < 65 THEN 2 END) FROM people
--> AVG(CASE WHEN age < 18 THEN 1 WHEN age < 65 THEN 2 END) = Average
--> age[0..17, 2 * 18..64]
--> age[0..64]

SELECT sex, COUNT(*) FROM people GROUP BY sex
--> sex = GroupKey, COUNT(*) = Aggregate
--> sex[F]
--> sex[M]
--> sex[other]

SELECT sex, employed, COUNT(*) AS n FROM people WHERE age < 18 GROUP BY sex, employed
--> sex = GroupKey, employed = GroupKey, n = Aggregate
--> age[0..17] x sex[F] x employed[False]
--> age[0..17] x sex[F] x employed[True]
--> age[0..17] x sex[F] x employed[None]
--> age[0..17] x sex[M] x employed[False]
--> ... 9 queries in 1 blocks

SELECT age_group, AVG(age) FROM people GROUP BY 1
--> age_group = GroupKey, AVG(age) = Average
--> age[1, 2 * 2, 3 * 3, 4 * 4, ...]
--> age[18 * 18, 19 * 19, 20 * 20, 21 * 21, ...]
--> age[65 * 65, 66 * 66, 67 * 67, 68 * 68, ...]
--> age[0..17]
--> ... 6 queries in 2 blocks

SELECT age_group AS g, COUNT(*) AS n FROM people GROUP BY g HAVING n > 100 AND g <> '0-17' ORDER BY n DESC LIMIT 1
--> g = GroupKey, n = Aggregate
--> age[0..17]
--> age[18..64]
--> age[65..85]

SELECT COUNT(*), COUNT(*) AS again, SUM(1) FROM people GROUP BY employed ORDER BY employed NULLS FIRST, AVG(age)
--> COUNT(*) = Aggregate, again = Aggregate, SUM(1) = Aggregate
--> employed[False]
--> employed[True]
--> employed[None]
--> age[1, 2 * 2, 3 * 3, 4 * 4, ...] x employed[False]
--> ... 6 queries in 2 blocks

SELECT COUNT(*) FROM people WHERE sex = 'M' GROUP BY sex
--> COUNT(*) = Aggregate
--> nothing
--> sex[M]
--> nothing

SELECT COUNT(*) FROM people WHERE age > 3 IS TRUE
--> COUNT(*) = Aggregate
--> age[4..85]

SELECT COUNT(*) FROM main.people
--> COUNT(*) = Aggregate
--> everything

SELECT COUNT(*) FROM people WHERE age = CAST('4' AS INTEGER)
--> COUNT(*) = Aggregate
--> age[4]

SELECT COUNT(*) FROM people WHERE sex < 'M'
--> COUNT(*) = Aggregate
--> sex[F]

SELECT COUNT(*) FROM people WHERE state ILIKE 'new%'
--> COUNT(*) = Aggregate
--> state[New Hampshire..New York]

SELECT COUNT(*) FROM people WHERE age * 2 > 60
--> COUNT(*) = Aggregate
--> age[31..85]

SELECT COUNT(*) FROM people WHERE age % 2 = 0
--> COUNT(*) = Aggregate
--> age[0, 2, 4, 6, ...]

SELECT COUNT(*) FROM people WHERE lower(sex) = 'f'
--> COUNT(*) = Aggregate
--> sex[F]

SELECT age_group, COUNT(*) FROM people GROUP BY age
--> age_group = GroupKey, COUNT(*) = Aggregate
--> age[0]
--> age[1]
--> age[2]
--> age[3]
--> ... 86 queries in 1 blocks

SELECT COUNT(*) + 1 FROM people
--> COUNT(*) + 1 = Call
--> everything

SELECT DISTINCT sex FROM people
--> sex = GroupKey

SELECT SUM(CASE WHEN age > 3 THEN income END) FROM people
--> SUM(CASE WHEN age > 3 THEN income END) = Aggregate
--> 5000 x age[4..85] x income[[0, 10000), 3 * [10000, 20000), 7 * [20000, 50000)]

SELECT SUM(CASE sex WHEN 'F' THEN 1 END) FROM people
--> SUM(CASE sex WHEN 'F' THEN 1 END) = Aggregate
--> sex[F]

SELECT SUM(age + 1) FROM people
--> SUM(age + 1) = Aggregate
--> age[0, 2 * 1, 3 * 2, 4 * 3, ...]

SELECT MEDIAN(age) FROM people
--> MEDIAN(age) = Quantile
--> age[0]
--> age[1]
--> age[2]
--> age[3]
--> ... 86 queries in 1 blocks

SELECT COUNT(*) FROM (SELECT * FROM people)
--> COUNT(*) = Aggregate
--> everything

WITH adults AS (SELECT * FROM people) SELECT COUNT(*) FROM adults
--> COUNT(*) = Aggregate
--> everything

SELECT COUNT(*) FROM people GROUP BY age + 1
--> COUNT(*) = Aggregate
--> age[0]
--> age[1]
--> age[2]
--> age[3]
--> ... 86 queries in 1 blocks

SELECT COUNT(*) FROM people GROUP BY ROLLUP (age)
--> COUNT(*) = Linear
--> age[0]
--> age[1]
--> age[2]
--> age[3]
--> ... 86 queries in 1 blocks

SELECT COUNT(*) FROM people GROUP BY ALL
--> COUNT(*) = Aggregate
--> everything

SELECT COUNT(*) FROM people ORDER BY 1 + 1
--> COUNT(*) = Aggregate
--> everything

SELECT COUNT(*) FROM people LIMIT 10 OFFSET 5
--> COUNT(*) = Aggregate
--> everything

SELECT COUNT(*) FROM people -- all of them
--> COUNT(*) = Aggregate
--> everything

SELECT /* all */ COUNT(*) FROM people
--> COUNT(*) = Aggregate
--> everything

SELECT age, COUNT(*) FROM people GROUP BY age HAVING age > COUNT(*)
--> age = GroupKey, COUNT(*) = Aggregate
--> age[0]
--> age[1]
--> age[2]
--> age[3]
--> ... 86 queries in 1 blocks

SELECT 'minors' AS who, COUNT(*) AS n, AVG(age) FROM people WHERE age < 18 UNION ALL SELECT 'all', COUNT(*), AVG(age) FROM people ORDER BY n DESC LIMIT 1
--> who = GroupKey, n = Linear, AVG(age) = Ratio
--> age[0..17]
--> age[1, 2 * 2, 3 * 3, 4 * 4, ...]
--> everything
--> age[1, 2 * 2, 3 * 3, 4 * 4, ...]

WITH t AS (SELECT * FROM people WHERE employed) (SELECT COUNT(*) FROM t) UNION ALL (SELECT COUNT(*) FROM t WHERE age < 18)
--> COUNT(*) = Linear
--> employed[True]
--> age[0..17] x employed[True]

SELECT PERCENTILE_CONT(0.25, 0.75) WITHIN GROUP (ORDER BY age), QUANTILE_CONT(age, [0.1, 0.9]) AS q FROM people
--> PERCENTILE_CONT_0.25 = Quantile, PERCENTILE_CONT_0.75 = Quantile, q_0.1 = Quantile, q_0.9 = Quantile
--> age[0]
--> age[1]
--> age[2]
--> age[3]
--> ... 86 queries in 1 blocks
