-- Views that are refused, with the message and its place, and the hint.

SELECT p.person, v.fee FROM patients p JOIN visits v ON p.district = v.fee
--> 'v' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 45, at 'visits v ON p.district = v.fee')
--> Add p.person = v.person to ON, joined with AND.

SELECT p.person, v.fee FROM patients p JOIN districts d ON p.district = d.id JOIN visits v ON v.code = d.region
--> 'v' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 83, at 'visits v ON v.code = d.region')
--> Add p.person = v.person to ON, joined with AND.

SELECT a.person, b.fee FROM visits a JOIN visits b ON a.day = b.day
--> 'b' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'visits b ON a.day = b.day')
--> Add a.person = b.person to ON, joined with AND.

SELECT a.person, b.fee FROM visits a JOIN visits b ON a.person = b.person OR a.day = b.day
--> 'b' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'visits b ON a.person = b.person OR a.day = b.day')
--> Add a.person = b.person to ON, joined with AND.

SELECT a.person, b.fee FROM visits a JOIN visits b ON NOT (a.person <> b.person)
--> 'b' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'visits b ON NOT (a.person <> b.person)')
--> Add a.person = b.person to ON, joined with AND.

SELECT a.person, b.fee FROM visits a JOIN visits b ON a.person < b.person
--> 'b' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'visits b ON a.person < b.person')
--> Add a.person = b.person to ON, joined with AND.

SELECT a.person, b.fee FROM visits a JOIN visits b ON LOWER(a.person) = LOWER(b.person)
--> 'b' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'visits b ON LOWER(a.person) = LOWER(b.person)')
--> Add a.person = b.person to ON, joined with AND.

SELECT a.person, b.fee FROM visits a, visits b WHERE a.person = b.person
--> A join of a view needs ON or USING. (line 1, column 39, at 'visits b')
--> Join private tables on the unit, and public ones on a key.

SELECT a.person, b.fee FROM visits a CROSS JOIN visits b
--> CROSS JOIN is not supported in a view. (line 1, column 49, at 'visits b')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT a.person, b.fee FROM visits a NATURAL JOIN visits b
--> NATURAL JOIN is not supported in a view. (line 1, column 51, at 'visits b')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT b.person, b.fee FROM visits a RIGHT JOIN visits b ON a.person = b.person
--> RIGHT JOIN is not supported in a view. (line 1, column 49, at 'visits b ON a.person = b.person')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT a.person, b.fee FROM visits a FULL JOIN visits b ON a.person = b.person
--> FULL JOIN is not supported in a view. (line 1, column 48, at 'visits b ON a.person = b.person')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT a.person FROM patients a SEMI JOIN visits b ON a.district = b.fee
--> SEMI JOIN is not supported in a view. (line 1, column 43, at 'visits b ON a.district = b.fee')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT a.person FROM patients a ANTI JOIN visits b ON a.district = b.fee
--> ANTI JOIN is not supported in a view. (line 1, column 43, at 'visits b ON a.district = b.fee')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT v.person, COUNT(*) AS n FROM patients p LEFT JOIN visits v ON p.person = v.person GROUP BY v.person
--> GROUP BY does not contain the unit: a group would have rows of several people. (line 1, column 99, at 'v.person')
--> Add p.person.

SELECT p.person, COUNT(*) OVER (PARTITION BY v.person) AS n FROM patients p LEFT JOIN visits v ON p.person = v.person
--> The window is not partitioned by the unit: it has rows of several people. (line 1, column 18, at 'COUNT(*) OVER (PARTITION BY v.person)')
--> Add PARTITION BY p.person.

SELECT p.person, w.fee FROM patients p LEFT JOIN visits v ON p.person = v.person JOIN visits w ON w.person = v.person
--> 'w' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 87, at 'visits w ON w.person = v.person')
--> Add p.person = w.person to ON, joined with AND.

SELECT p.person, n.fee FROM patients p JOIN numbers n ON p.person = n.person
--> These are of different types: integers and text. (line 1, column 58, at 'p.person = n.person')
--> Use TRY_CAST(x AS DOUBLE) or AS DATE.

SELECT d.person, p.sex FROM districts d JOIN patients p ON p.district = d.id
--> FROM begins with 'd', which has no unit. (line 1, column 29, at 'districts d')
--> Begin with a private table, and join the public ones to it.

SELECT d.person, p.sex FROM patients p JOIN districts d ON p.person = d.person
--> The unit is not selected as a bare column: its rows could not be told apart by person. (line 1, column 8, at 'd.person')
--> Add it: SELECT p.person, ...

SELECT id AS person, region FROM districts
--> FROM begins with 'districts', which has no unit. (line 1, column 34, at 'districts')
--> Begin with a private table, and join the public ones to it.

SELECT p.person, s.n FROM patients p JOIN (SELECT person, COUNT(*) AS n FROM visits) AS s ON s.person = p.person
--> An aggregate is only supported with GROUP BY the unit: otherwise it has rows of several people. (line 1, column 59, at 'COUNT(*)')
--> Add GROUP BY person, or OVER (PARTITION BY ...).

SELECT p.person, s.n FROM patients p JOIN (SELECT code, COUNT(*) AS n FROM visits GROUP BY code) AS s ON s.code = p.sex
--> GROUP BY does not contain the unit: a group would have rows of several people. (line 1, column 92, at 'code')
--> Add person.

WITH s AS (SELECT MAX(fee) AS top FROM visits) SELECT p.person, s.top FROM patients p JOIN s ON TRUE
--> An aggregate is only supported with GROUP BY the unit: otherwise it has rows of several people. (line 1, column 23, at 'fee')
--> Add GROUP BY person, or OVER (PARTITION BY ...).

SELECT COUNT(*) AS n FROM visits
--> An aggregate is only supported with GROUP BY the unit: otherwise it has rows of several people. (line 1, column 8, at 'COUNT(*)')
--> Add GROUP BY person, or OVER (PARTITION BY ...).

SELECT person, COUNT(*) AS n FROM visits GROUP BY code
--> GROUP BY does not contain the unit: a group would have rows of several people. (line 1, column 51, at 'code')
--> Add person.

SELECT code, COUNT(*) AS n FROM visits GROUP BY person, code
--> The unit is not selected as a bare column: its rows could not be told apart by person. (line 1, column 8, at 'code')
--> Add it: SELECT person, ...

SELECT LOWER(person) AS person, COUNT(*) AS n FROM visits GROUP BY LOWER(person)
--> GROUP BY does not contain the unit: a group would have rows of several people. (line 1, column 68, at 'LOWER(person)')
--> Add person.

SELECT person, fee FROM visits GROUP BY person
--> fee is neither in GROUP BY nor in an aggregate. (line 1, column 16, at 'fee')
--> Add it to GROUP BY, or use MIN or MAX.

SELECT person, code, COUNT(*) AS n FROM visits GROUP BY ROLLUP (person, code)
--> ROLLUP is not supported in a view: a person would be in several groups. (line 1, column 65, at 'person, code')
--> List the columns.

SELECT person, code, COUNT(*) AS n FROM visits GROUP BY CUBE (person, code)
--> CUBE is not supported in a view: a person would be in several groups. (line 1, column 63, at 'person, code')
--> List the columns.

SELECT person, code, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((person), (code))
--> GROUPING SETS is not supported in a view: a person would be in several groups. (line 1, column 73, at 'person), (code')
--> List the columns.

SELECT person, code, COUNT(*) AS n FROM visits GROUP BY ALL
--> GROUP BY ALL is not supported in a view: a person would be in several groups. (line 1, column 8, at 'person, code, COUNT(*) AS n FROM visits')
--> List the columns.

SELECT person, COUNT(*) AS n FROM visits GROUP BY 1
--> GROUP BY a position is not supported. (line 1, column 51, at '1')
--> Write the column.

SELECT person, RANK() OVER (ORDER BY fee) AS place FROM visits
--> The window is not partitioned by the unit: it has rows of several people. (line 1, column 16, at 'RANK() OVER (ORDER BY fee)')
--> Add PARTITION BY person.

SELECT person, RANK() OVER (PARTITION BY code ORDER BY fee) AS place FROM visits
--> The window is not partitioned by the unit: it has rows of several people. (line 1, column 16, at 'RANK() OVER (PARTITION BY code ORDER BY fee)')
--> Add PARTITION BY person.

SELECT person, AVG(fee) OVER () AS mean FROM visits
--> The window is not partitioned by the unit: it has rows of several people. (line 1, column 16, at 'AVG(fee)')
--> Add PARTITION BY person.

SELECT person, SUM(fee) OVER (PARTITION BY person ORDER BY day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM visits
--> A frame of a window is not supported here. (line 1, column 77, at '1')
--> Remove ROWS, RANGE or GROUPS.

SELECT person, NTILE(4) OVER (PARTITION BY person ORDER BY fee) AS n FROM visits
--> NTILE is not supported in a view: it depends on the order of the rows, or is not on the list. (line 1, column 16, at 'NTILE(4)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, LAST_VALUE(fee) OVER (PARTITION BY person ORDER BY day) AS n FROM visits
--> LAST_VALUE is not supported in a view: it depends on the order of the rows, or is not on the list. (line 1, column 16, at 'LAST_VALUE(fee)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, fee FROM visits WHERE fee > (SELECT AVG(fee) FROM visits)
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 52, at 'AVG(fee) FROM visits')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT person, (SELECT MAX(fee) FROM visits) AS top FROM patients
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 28, at 'fee) FROM visits')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT p.person, (SELECT MAX(v.fee) FROM visits v WHERE v.code = p.sex) AS top FROM patients p
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 30, at 'v.fee) FROM visits v WHERE v.code = p.sex')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT person, sex FROM patients WHERE person IN (SELECT person FROM visits)
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 58, at 'person FROM visits')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT person, sex FROM patients WHERE sex NOT IN (SELECT code FROM visits)
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 59, at 'code FROM visits')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT person, sex FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.code = p.sex)
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 57, at '1 FROM visits v WHERE v.code = p.sex')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT person, fee FROM visits WHERE fee > ALL (SELECT fee FROM visits)
--> A subquery is only supported in FROM: here it would see rows of other people. (line 1, column 56, at 'fee FROM visits')
--> Join it on the unit: JOIN (SELECT unit, ... GROUP BY unit) AS b ON a.unit = b.unit.

SELECT person, fee FROM visits LIMIT 10
--> LIMIT is not supported in a view: which rows it keeps depends on all people. (line 1, column 38, at '10')
--> Remove it.

SELECT person, fee FROM visits ORDER BY fee LIMIT 1
--> LIMIT is not supported in a view: which rows it keeps depends on all people. (line 1, column 51, at '1')
--> Remove it.

SELECT person, fee FROM visits ORDER BY fee
--> ORDER BY is not supported in a view: the rows of a view have no order. (line 1, column 41, at 'fee')
--> Remove it.

SELECT person, fee FROM visits OFFSET 3
--> OFFSET is not supported in a view: which rows it skips depends on all people. (line 1, column 39, at '3')
--> Remove it.

SELECT DISTINCT ON (code) person, code FROM visits
--> DISTINCT ON is not supported in a view: which row it keeps depends on an order. (line 1, column 21, at 'code')
--> Use ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY ...) in a subquery, and WHERE.

SELECT person, fee FROM visits UNION ALL SELECT person, district AS fee FROM patients
--> A view is one SELECT: set operations and other statements are not supported. (None)
--> Write SELECT ... FROM ... GROUP BY ...

SELECT x.person, x.fee FROM (SELECT person, fee FROM visits EXCEPT SELECT person, fee FROM visits) AS x
--> Set operations are not supported in a view. (line 1, column 37, at 'person, fee FROM visits EXCEPT SELECT person, fee FROM vi...')
--> Write one SELECT; join its parts on the unit.

SELECT person, fee FROM visits TABLESAMPLE (10 PERCENT)
--> Sampling is not supported here. (line 1, column 45, at '10')
--> Remove it.

SELECT person, fee FROM visits USING SAMPLE 10
--> Sampling is not supported in a view: it has another value each time. (line 1, column 45, at '10')
--> Remove it.

SELECT person, random() AS r FROM visits
--> RAND is not supported in a view: it has another value each time. (line 1, column 16, at 'random')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, CURRENT_DATE - day AS age FROM visits
--> CURRENT_DATE is not supported in a view: it has another value each time. (line 1, column 31, at 'day')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, now() AS t FROM visits
--> NOW is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'now')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, uuid() AS u FROM visits
--> UUID is not supported in a view: it has another value each time. (line 1, column 16, at 'uuid')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, nextval('s') AS n FROM visits
--> NEXTVAL is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at "nextval('s')")
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, pg_sleep(fee) AS n FROM visits
--> PG_SLEEP is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'pg_sleep(fee)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, FIRST(code) AS c FROM visits GROUP BY person
--> FIRST is not supported in a view: it depends on the order of the rows, or is not on the list. (line 1, column 16, at 'FIRST(code)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, ANY_VALUE(code) AS c FROM visits GROUP BY person
--> This function is not supported in a view: it depends on the order of the rows. (line 1, column 16, at 'ANY_VALUE(code)')
--> Use MIN or MAX.

SELECT person, STRING_AGG(code, ',') AS c FROM visits GROUP BY person
--> GROUP_CONCAT is not supported in a view: it depends on the order of the rows, or is not on the list. (line 1, column 27, at "code, ','")
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, ARRAY_AGG(code) AS c FROM visits GROUP BY person
--> ARRAY_AGG is not supported in a view: it depends on the order of the rows, or is not on the list. (line 1, column 16, at 'ARRAY_AGG(code)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, MEDIAN(fee) AS c FROM visits GROUP BY person
--> MEDIAN is not supported in a view: it depends on the order of the rows, or is not on the list. (line 1, column 16, at 'MEDIAN(fee)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, CAST(code AS DOUBLE) AS n FROM visits
--> CAST fails on text that cannot be converted. (line 1, column 21, at 'code')
--> Use TRY_CAST(... AS DOUBLE), which gives NULL instead.

SELECT person, code::INTEGER AS n FROM visits
--> A cast to INT is not supported here: it may fail, or engines differ. (line 1, column 16, at 'code')
--> Use TRY_CAST(x AS DOUBLE), with FLOOR or ROUND for whole numbers, or TRY_CAST(x AS DATE).

SELECT person, TRY_CAST(code AS INTEGER) AS n FROM visits
--> A cast to INT is not supported here: it may fail, or engines differ. (line 1, column 25, at 'code')
--> Use TRY_CAST(x AS DOUBLE), with FLOOR or ROUND for whole numbers, or TRY_CAST(x AS DATE).

SELECT person, SQRT(fee) AS n FROM visits
--> SQRT is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'SQRT(fee)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, LN(fee) AS n FROM visits
--> LN is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'LN(fee)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, fee ** 20 AS n FROM visits
--> POWER is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'fee ** 20')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, code || code AS c FROM visits
--> || is not supported in a view: the text may become too long. (line 1, column 16, at 'code || code')
--> Use CASE.

SELECT person, REPEAT(code, 1000000) AS c FROM visits
--> REPEAT is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'REPEAT(code, 1000000)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, error(code) AS c FROM visits
--> ERROR is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'error(code)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, number % 2 AS c FROM patients
--> % is not supported in a view: engines differ. (line 1, column 16, at 'number % 2')
--> Use x - FLOOR(x / n) * n.

SELECT person, code FROM visits WHERE code ILIKE 'e%'
--> ILIKE is not supported in a view: engines fold case differently. (line 1, column 39, at "code ILIKE 'e%'")
--> Use LOWER(x) LIKE 'abc%'.

SELECT person, code FROM visits WHERE code LIKE '%\'
--> LIKE is supported for prefixes only. (line 1, column 39, at "code LIKE '%\\'")
--> Write LIKE 'abc%', or use = or SUBSTRING.

SELECT person, code FROM visits WHERE regexp_matches(code, 'e.*')
--> REGEXP_LIKE is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 39, at "regexp_matches(code, 'e.*')")
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, code COLLATE NOCASE AS code FROM visits
--> COLLATE is not supported in a view: text is compared byte by byte. (line 1, column 16, at 'code')
--> Use LOWER.

SELECT person, day + INTERVAL 1 YEAR AS d FROM visits
--> INTERVAL is not supported in a view: a date may leave its range. (line 1, column 16, at 'day + INTERVAL 1 YEAR')
--> Subtract dates: b - a is a number of days.

SELECT person, EXTRACT(EPOCH FROM day) AS d FROM visits
--> EXTRACT(EPOCH) is not supported. (line 1, column 16, at 'EXTRACT(EPOCH FROM day)')
--> Use YEAR, QUARTER, MONTH.

SELECT person, DATE '2024-02-30' AS d FROM visits
--> '2024-02-30' is not a date. (line 1, column 21, at "'2024-02-30'")
--> Write 2024-12-31.

SELECT person, fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee * fee AS n FROM visits
--> The result may be too large or too small. (line 1, column 16, at 'fee * fee * fee * fee * fee * fee * fee * fee * fee * fee...')
--> Use fewer multiplications.

SELECT person, r.x FROM visits, LATERAL (SELECT fee AS x) AS r
--> A join of a view needs ON or USING. (line 1, column 49, at 'fee AS x) AS r')
--> Join private tables on the unit, and public ones on a key.

SELECT person, UNNEST([1, 2]) AS n FROM visits
--> EXPLODE is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'UNNEST([1, 2])')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, n FROM visits, range(3) AS t(n)
--> A join of a view needs ON or USING. (line 1, column 31, at 'range(3) AS t(n)')
--> Join private tables on the unit, and public ones on a key.

SELECT person, fee FROM read_csv('/etc/passwd')
--> A view selects from tables, CTEs and subqueries, not from functions or values. (line 1, column 25, at "read_csv('/etc/passwd')")
--> Declare the table in the configuration: [tables.NAME].

SELECT person, fee FROM 'other.parquet'
--> Unknown table 'other.parquet'. (line 1, column 25, at "'other.parquet'")
--> Declare it as [tables.other.parquet], with its `unit` or `public = true`. Declared: visits, patients, districts, numbers.

SELECT person, fee FROM other.visits
--> A schema is not supported here. (line 1, column 25, at 'other')
--> Set tables.NAME.table.

SELECT person, fee FROM pg_catalog.pg_class
--> A schema is not supported here. (line 1, column 25, at 'pg_catalog')
--> Set tables.NAME.table.

SELECT person, fee FROM secrets
--> Unknown table 'secrets'. (line 1, column 25, at 'secrets')
--> Declare it as [tables.secrets], with its `unit` or `public = true`. Declared: visits, patients, districts, numbers.

WITH RECURSIVE r AS (SELECT person, fee FROM visits UNION ALL SELECT person, fee FROM r) SELECT person, fee FROM r
--> Recursive CTEs are not supported in a view. (line 1, column 16, at 'r AS (SELECT person, fee FROM visits UNION ALL SELECT per...')
--> Remove RECURSIVE.

SELECT person, fee FROM visits QUALIFY ROW_NUMBER() OVER (ORDER BY fee) = 1
--> QUALIFY is not supported in a view: not all engines have it. (line 1, column 40, at 'ROW_NUMBER() OVER (ORDER BY fee) = 1')
--> Use a subquery in FROM, and WHERE.

SELECT person, fee FROM visits WHERE ROW_NUMBER() OVER (PARTITION BY person ORDER BY fee) = 1
--> A window function is only supported in the SELECT list, without GROUP BY. (line 1, column 38, at 'ROW_NUMBER() OVER (PARTITION BY person ORDER BY fee)')
--> Compute it in a subquery in FROM.

SELECT person, COUNT(*) AS n FROM visits GROUP BY person HAVING SUM(COUNT(*)) OVER () > 3
--> A window function is only supported in the SELECT list, without GROUP BY. (line 1, column 65, at 'SUM(COUNT(*))')
--> Compute it in a subquery in FROM.

SELECT * FROM visits
--> * is not supported in a view. (line 1, column 8, at '*')
--> List the columns.

SELECT person, COUNT(*) AS n, COUNT(*) AS n FROM visits GROUP BY person
--> Two columns are called 'n'. (line 1, column 31, at 'COUNT(*) AS n')
--> Rename one with AS.

SELECT fee FROM visits
--> The unit is not selected as a bare column: its rows could not be told apart by person. (line 1, column 8, at 'fee')
--> Add it: SELECT person, ...

SELECT COALESCE(p.person, v.person) AS person, v.fee FROM patients p JOIN visits v ON p.person = v.person
--> The unit is not selected as a bare column: its rows could not be told apart by person. (line 1, column 8, at 'COALESCE(p.person, v.person) AS person')
--> Add it: SELECT p.person, ...

SELECT CASE WHEN fee > 3 THEN person ELSE 'ann' END AS person, fee FROM visits
--> The unit is not selected as a bare column: its rows could not be told apart by person. (line 1, column 18, at "fee > 3 THEN person ELSE 'ann' END AS person")
--> Add it: SELECT person, ...

SELECT person, MIN(person) AS least FROM visits GROUP BY code
--> GROUP BY does not contain the unit: a group would have rows of several people. (line 1, column 58, at 'code')
--> Add person.

SELECT MIN(person) AS person, code FROM visits GROUP BY code
--> GROUP BY does not contain the unit: a group would have rows of several people. (line 1, column 57, at 'code')
--> Add person.

SELECT person, fee FROM visits PIVOT (SUM(fee) FOR code IN ('a', 'b'))
--> PIVOT is not supported here. (line 1, column 25, at "visits PIVOT (SUM(fee) FOR code IN ('a', 'b'))")
--> Use aggregates with FILTER.

DELETE FROM visits
--> A view is one SELECT: set operations and other statements are not supported. (None)
--> Write SELECT ... FROM ... GROUP BY ...

SELECT person, paid + 1 AS n FROM visits
--> This is not a number. (line 1, column 16, at 'paid + 1')
--> Use TRY_CAST(x AS DOUBLE).

SELECT p.person, fee FROM patients p JOIN visits v USING (person)
--> Ambiguous column 'fee': name its table. (line 1, column 18, at 'fee')
--> Write p.fee or v.fee.

SELECT p.person, d.region FROM patients p JOIN districts d ON p.district = d.id AND v.fee = 1
--> Unknown source 'v': a subquery sees only its own FROM. (line 1, column 85, at 'v.fee')
--> The sources here are p, d.

SELECT v.person, p.sex FROM visits v OUTER JOIN patients p ON p.person = v.person
--> OUTER JOIN is not supported in a view. (line 1, column 49, at 'patients p ON p.person = v.person')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT v.person, p.sex FROM visits v ASOF JOIN patients p ON p.person = v.person AND v.fee >= p.number
--> ASOF JOIN is not supported in a view. (line 1, column 48, at 'patients p ON p.person = v.person AND v.fee >= p.number')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT v.person, p.sex FROM visits v POSITIONAL JOIN patients p
--> POSITIONAL JOIN is not supported in a view. (line 1, column 54, at 'patients p')
--> Use JOIN or LEFT JOIN, with ON or USING.

SELECT v.person, v.fee FROM (visits v JOIN patients p ON p.sex = v.code)
--> Set operations are not supported in a view. (line 1, column 30, at 'visits v JOIN patients p ON p.sex = v.code')
--> Write one SELECT; join its parts on the unit.

SELECT v.person, p.sex FROM visits v LEFT JOIN LATERAL (SELECT person, sex FROM patients) p ON p.person = v.person
--> A view selects from tables, CTEs and subqueries, not from functions or values. (line 1, column 64, at 'person, sex FROM patients) p')
--> Declare the table in the configuration: [tables.NAME].

SELECT v.person, v.fee FROM visits v JOIN patients p ON p.person = v.person = TRUE
--> 'p' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'patients p ON p.person = v.person')
--> Add v.person = p.person to ON, joined with AND.

SELECT v.person, v.fee FROM visits v JOIN patients p ON (p.person = v.person) AND FALSE OR TRUE
--> 'p' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'patients p ON (p.person = v.person)')
--> Add v.person = p.person to ON, joined with AND.

SELECT v.person, v.fee FROM visits v JOIN patients p ON p.person = p.person
--> 'p' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'patients p ON p.person = p.person')
--> Add v.person = p.person to ON, joined with AND.

SELECT v.person, v.fee FROM visits v JOIN patients p ON v.person = v.person
--> 'p' is private, and is not joined on the unit: one person could change the rows of others. (line 1, column 43, at 'patients p ON v.person = v.person')
--> Add v.person = p.person to ON, joined with AND.

SELECT d.person, v.fee FROM visits v JOIN districts d USING (person)
--> The unit is not selected as a bare column: its rows could not be told apart by person. (line 1, column 8, at 'd.person')
--> Add it: SELECT v.person, ...

SELECT code AS person, person AS code, COUNT(*) AS n FROM visits GROUP BY code
--> person is neither in GROUP BY nor in an aggregate. (line 1, column 24, at 'person')
--> Add it to GROUP BY, or use MIN or MAX.

SELECT person AS person, fee AS "Person" FROM visits
--> Two columns are called 'Person'. (line 1, column 26, at 'fee AS "Person"')
--> Rename one with AS.

SELECT person, SUM(fee) OVER (PARTITION BY COALESCE(person)) AS s FROM visits
--> The window is not partitioned by the unit: it has rows of several people. (line 1, column 16, at 'SUM(fee) OVER (PARTITION BY COALESCE(person))')
--> Add PARTITION BY person.

SELECT person, LAG(fee, 99999999999999999999) OVER (PARTITION BY person ORDER BY day) AS s FROM visits
--> The offset must be a small number. (line 1, column 16, at 'LAG(fee, 99999999999999999999) OVER (PARTITION BY person ...')
--> Write LAG(x, 1).

SELECT person, SUBSTRING(code, '1', 3) AS c FROM visits
--> SUBSTRING needs a constant start and length. (line 1, column 26, at "code, '1', 3")
--> Write SUBSTRING(x, 1, 3).

SELECT person, SUBSTRING(code, ٣, 3) AS c FROM visits
--> SUBSTRING needs a constant start and length. (line 1, column 26, at 'code, ٣, 3')
--> Write SUBSTRING(x, 1, 3).

SELECT person, fee FROM visits WHERE fee > ²
--> Unknown column '²'. (line 1, column 44, at '²')
--> Use the column's name as the name of the attribute.

SELECT person, TRY_CAST(code AS DECIMAL(3, 1)) AS c FROM visits
--> A type has no length or precision here. (line 1, column 25, at 'code AS DECIMAL(3, 1)')
--> Use SUBSTRING or ROUND.

SELECT person, COUNT(code, fee) FILTER (WHERE fee > 1) AS n FROM visits GROUP BY person
--> A further argument is not supported here. (line 1, column 16, at 'COUNT(code, fee)')
--> Remove it.

SELECT person, MAX(fee, 3) FILTER (WHERE fee > 1) AS n FROM visits GROUP BY person
--> A further argument is not supported here. (line 1, column 25, at '3')
--> Remove it.

SELECT person, day > SUBSTRING('2020-01-01', 1, 4) AS late FROM visits
--> A date is compared with text. (line 1, column 16, at "day > SUBSTRING('2020-01-01', 1, 4)")
--> Use TRY_CAST(x AS DATE).

SELECT person, day > COALESCE('2020-01-01', '2021-01-01') AS late FROM visits
--> A date is compared with text. (line 1, column 16, at "day > COALESCE('2020-01-01', '2021-01-01')")
--> Use TRY_CAST(x AS DATE).

SELECT person, day > 'infinity' AS late FROM visits
--> 'infinity' is not a date. (line 1, column 16, at "day > 'infinity'")
--> Write 2024-12-31.

SELECT person, nextval('ids') AS n FROM visits
--> NEXTVAL is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at "nextval('ids')")
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, pg_sleep(10) AS n FROM visits
--> PG_SLEEP is not supported in a view: it may fail on some rows, or engines differ. (line 1, column 16, at 'pg_sleep(10)')
--> Use COUNT, SUM, AVG, MIN, MAX, ABS, FLOOR, CEIL, ROUND, COALESCE, NULLIF, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, EXTRACT or TRY_CAST.

SELECT person, COLUMNS('.*') FROM visits
--> A computed column of a view needs a name. (line 1, column 16, at "COLUMNS('.*')")
--> Add AS name.

SELECT person, visits AS n FROM visits
--> Unknown column 'visits'. (line 1, column 16, at 'visits')
--> Use the column's name as the name of the attribute.

SELECT person, ctid AS n FROM visits
--> Unknown column 'ctid'. (line 1, column 16, at 'ctid')
--> Use the column's name as the name of the attribute.

SELECT person, $1 AS n FROM visits
--> Placeholder is not supported in a view: it is not on the list. (line 1, column 22, at 'n')
--> Use comparisons, CASE, + - * / and functions.

SELECT person, x FROM (VALUES ('ann', 1)) AS t(person, x)
--> A list of column names is not supported in a view. (line 1, column 32, at "'ann', 1)) AS t(person, x")
--> Use AS inside.
