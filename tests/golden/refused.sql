SELECT COUNT(*) FROM people WHERE income < 12500
--> sql.cuts-through-bin, line 1, column 35, at 'income < 12500'
--> income < 12500 splits the bin from 10000 to 20000.
--> Write income < 10000 or income < 20000.

SELECT COUNT(*) FROM people WHERE 10000 >= income
--> sql.cuts-through-bin, line 1, column 35, at '10000 >= income'
--> income <= 10000 splits the bin from 10000 to 20000.
--> Write income < 10000 or income < 20000.

SELECT COUNT(*) FROM people WHERE income BETWEEN 10000 AND 20000
--> sql.cuts-through-bin, line 1, column 35, at 'income BETWEEN 10000 AND 20000'
--> income <= 20000 splits the bin from 20000 to 50000.
--> Write income < 20000 or income < 50000.

SELECT COUNT(*) FROM people WHERE income = 15000
--> sql.cuts-through-bin, line 1, column 35, at 'income = 15000'
--> income = 15000 splits the bin from 10000 to 20000.
--> Write income >= 10000 AND income < 20000.

SELECT COUNT(*) FROM people WHERE income IN (1, 2)
--> sql.cuts-through-bin, line 1, column 46, at '1'
--> income = 1 splits the bin from 0 to 10000.
--> Write income >= 0 AND income < 10000.

SELECT COUNT(*) FROM people WHERE admitted = DATE '2020-01-31'
--> sql.cuts-through-bin, line 1, column 35, at "admitted = DATE '2020-01-31'"
--> admitted = DATE '2020-01-31' splits the bin from 2020-01-01 to 2020-02-01.
--> Write admitted >= DATE '2020-01-01' AND admitted < DATE '2020-02-01'.

SELECT COUNT(*) FROM people WHERE admitted <> '2020-02-10'
--> sql.cuts-through-bin, line 1, column 35, at "admitted <> '2020-02-10'"
--> admitted <> '2020-02-10' splits the bin from 2020-02-01 to 2020-03-01.
--> Write admitted < DATE '2020-02-01' OR admitted >= DATE '2020-03-01'.

SELECT COUNT(*) FROM people WHERE admitted > '2020-02-10'
--> sql.cuts-through-bin, line 1, column 35, at "admitted > '2020-02-10'"
--> admitted > '2020-02-10' splits the bin from 2020-02-01 to 2020-03-01.
--> Write admitted >= DATE '2020-02-01' or admitted >= DATE '2020-03-01'.

SELECT COUNT(*) FROM persons
--> sql.unknown-name, line 1, column 22, at 'persons'
--> Unknown table "persons".
--> Write FROM people.
--> suggestion: persons -> people

SELECT COUNT(*) FROM "People"
--> sql.unknown-name, line 1, column 22, at '"People"'
--> Unknown table "People".
--> Write FROM people.
--> suggestion: People -> people

SELECT COUNT(*)
--> sql.unsupported, line 1, column 8, at 'COUNT(*)'
--> Missing FROM clause.
--> Add FROM people.

SELECT COUNT(*) FROM people WHERE agee > 3
--> sql.unknown-name, line 1, column 35, at 'agee'
--> Unknown column "agee".
--> Did you mean "age"?
--> suggestion: agee -> age

SELECT COUNT(*) FROM people WHERE "AGE" > 3
--> sql.unknown-name, line 1, column 35, at '"AGE"'
--> Unknown column "AGE".
--> Did you mean "age"?
--> suggestion: AGE -> age

SELECT COUNT(*) FROM people WHERE q.age > 3
--> sql.unknown-name, line 1, column 35, at 'q.age'
--> Unknown table "q".
--> Write people.age.
--> suggestion: q -> people

SELECT COUNT(*) FROM people
WHERE age > 3
  AND zip = 12345
--> sql.unknown-name, line 3, column 7, at 'zip'
--> Unknown column "zip".
--> The columns are age, age_group, sex, income, employed, admitted, admitted_year, state, size.

SELECT COUNT(*) FROM people WHERE state = 'new york'
--> sql.unknown-name, line 1, column 35, at "state = 'new york'"
--> Unknown value 'new york' of column "state".
--> Did you mean 'New York'?
--> suggestion: 'new york' -> 'New York'

SELECT COUNT(*) FROM people WHERE state IN ('Maine', 'Texas')
--> sql.unknown-name, line 1, column 54, at "'Texas'"
--> Unknown value 'Texas' of column "state".
--> The values are 'Maine', 'Massachusetts', 'New Hampshire', 'New York', 'Vermont'.

SELECT COUNT(*) FROM people WHERE age_group = '18-65'
--> sql.unknown-name, line 1, column 35, at "age_group = '18-65'"
--> Unknown value '18-65' of column "age_group".
--> Did you mean '18-64'?
--> suggestion: '18-65' -> '18-64'

SELECT COUNT(*) FROM people WHERE sex = 1
--> sql.unsupported, line 1, column 35, at 'sex = 1'
--> Column "sex" is text, but 1 is a number.
--> Write a string: sex = 'F'.

SELECT COUNT(*) FROM people WHERE age = '42'
--> sql.unsupported, line 1, column 35, at "age = '42'"
--> Column "age" is a number, but '42' is text.
--> Write 42 without quotes.

SELECT COUNT(*) FROM people WHERE age < 'old'
--> sql.unsupported, line 1, column 35, at "age < 'old'"
--> Column "age" is a number, but 'old' is text.
--> Compare it with a number.

SELECT COUNT(*) FROM people WHERE employed = 1
--> sql.unsupported, line 1, column 35, at 'employed = 1'
--> Column "employed" is boolean, but 1 is a number.
--> Write employed = TRUE or employed = FALSE.

SELECT COUNT(*) FROM people WHERE employed > FALSE
--> sql.unsupported, line 1, column 35, at 'employed'
--> Column "employed" has no order, so > is not supported.
--> Use =, <>, IN or IS NULL.

SELECT COUNT(*) FROM people WHERE admitted > 2020
--> sql.unsupported, line 1, column 35, at 'admitted > 2020'
--> Column "admitted" is a date, but 2020 is a number.
--> Write a date as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE admitted > 'May 2020'
--> sql.unsupported, line 1, column 35, at "admitted > 'May 2020'"
--> Column "admitted" is a date, but 'May 2020' is text.
--> Write a date as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE admitted > DATE '2020-02-30'
--> sql.unsupported, line 1, column 51, at "'2020-02-30'"
--> Invalid date '2020-02-30'.
--> Write a date as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE age LIKE '4%'
--> sql.unsupported, line 1, column 35, at "age LIKE '4%'"
--> LIKE requires text, but column "age" is not text.
--> Compare it with a value: age = 0.

SELECT COUNT(*) FROM people WHERE state LIKE 5
--> sql.unsupported, line 1, column 35, at 'state LIKE 5'
--> LIKE requires a text column and a pattern in single quotes.
--> Example: state LIKE 'New%'.

SELECT COUNT(*) FROM people WHERE state LIKE 'a!' ESCAPE '!'
--> sql.unsupported, line 1, column 35, at "state LIKE 'a!'"
--> The LIKE pattern ends with its escape character.
--> Write the escape character twice.

SELECT COUNT(*) FROM people WHERE state LIKE 'a' ESCAPE '!!'
--> sql.unsupported, line 1, column 35, at "state LIKE 'a'"
--> ESCAPE requires a single character.
--> Example: ESCAPE '!'.

SELECT COUNT(*) FROM people WHERE age
--> sql.unsupported, line 1, column 35, at 'age'
--> Column "age" is not boolean.
--> Compare it with a value: age = 0.

SELECT COUNT(*) FROM people WHERE 'yes'
--> sql.unsupported, line 1, column 35, at "'yes'"
--> Expected a condition.
--> Example: age >= 20.

SELECT COUNT(*) FROM people WHERE age > income
--> sql.cuts-through-bin, line 1, column 35, at 'age > income'
--> age > income splits the bin of income from 0 to 10000.
--> Use income itself, or split it at its edges: 0, 10000, 20000, 50000.

SELECT COUNT(*) FROM people WHERE age > 1 / 0
--> sql.unsupported, line 1, column 41, at '1 / 0'
--> Division by zero.
--> Use another divisor.

SELECT COUNT(*) FROM people WHERE age > 1e99 * 1e99
--> sql.unsupported, line 1, column 41, at '1e99 * 1e99'
--> The number has too many digits.
--> Round it.

SELECT COUNT(*) FROM people WHERE age > 1e999999999
--> sql.unsupported, line 1, column 41, at '1e999999999'
--> Invalid number "1e999999999".
--> Write it as 12.5 or 1e6, with fewer than 100 digits.

SELECT COUNT(*) FROM people WHERE age > 'a' + 1
--> sql.unsupported, line 1, column 41, at "'a'"
--> Arithmetic requires numbers, but 'a' is text.
--> Write the value itself.

SELECT COUNT(*) FROM people WHERE age IN ()
--> sql.unsupported, line 1, column 35, at 'age'
--> IN requires at least one value.
--> List a value.

SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)
--> sql.unsupported, line 1, column 50, at 'age FROM people'
--> A subquery is only supported in FROM.
--> Write its conditions in WHERE, in place of IN.

SELECT COUNT(*) FROM people WHERE age IS 3
--> sql.unsupported, line 1, column 35, at 'age IS 3'
--> IS requires NULL, TRUE or FALSE.
--> Use = to compare with a value.

SELECT COUNT(*) FROM people WHERE 1 = 'a'
--> sql.unsupported, line 1, column 35, at "1 = 'a'"
--> Cannot compare 1 (a number) with 'a' (text).
--> Compare values of the same type.

SELECT COUNT(*) FROM people WHERE COUNT(*) > 3
--> sql.unsupported, line 1, column 35, at 'COUNT(*)'
--> An aggregate is not allowed here.
--> Use it in the SELECT list, HAVING or ORDER BY.

SELECT COUNT(*) FROM people WHERE age = ?
--> sql.unsupported, line 1, column 41, at '?'
--> Parameters are not supported.
--> Write the value in the SQL text.

SELECT COUNT(*) FROM people WHERE age = $1
--> sql.unsupported, line 1, column 41, at '$'
--> Parameters are not supported.
--> Write the value in the SQL text.

SELECT COUNT(*) FROM people WHERE age = :age
--> sql.unsupported, line 1, column 41, at ':'
--> Parameters are not supported.
--> Write the value in the SQL text.

SELECT COUNT(*) FROM people WHERE admitted > CURRENT_DATE
--> sql.unsupported, line 1, column 46, at 'CURRENT_DATE'
--> The current time is not supported: the same question must mean the same tomorrow.
--> Write a date as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)
--> sql.unsupported, line 1, column 35, at 'EXISTS'
--> A subquery is only supported in FROM.
--> Count the rows that exist: SELECT COUNT(*) FROM ... WHERE ...

SELECT COUNT(*) FROM people WHERE (age, sex) = (1, 'F')
--> sql.unsupported, line 1, column 36, at 'age, sex'
--> (age, sex) are several columns at once.
--> Compare them one by one, with AND and OR.

SELECT * FROM people
--> sql.unsupported, line 1, column 8, at '*'
--> SELECT * is not supported: single rows are never returned.
--> Write SELECT COUNT(*). DESCRIBE people lists the columns.

SELECT p.* FROM people p
--> sql.unsupported, line 1, column 8, at 'p.*'
--> SELECT * is not supported: single rows are never returned.
--> Write SELECT COUNT(*). DESCRIBE people lists the columns.

SELECT age FROM people
--> sql.unsupported, line 1, column 8, at 'age'
--> Column "age" must appear in GROUP BY or inside an aggregate.
--> Add age to GROUP BY, or remove it here.

SELECT sex FROM people GROUP BY sex
--> sql.unsupported, line 1, column 8, at 'sex FROM people GROUP BY sex'
--> The query has no COUNT, SUM or AVG.
--> Add COUNT(*) to the SELECT list.

SELECT 1 FROM people
--> sql.unsupported, line 1, column 8, at '1 FROM people'
--> The query has no COUNT, SUM or AVG.
--> Add COUNT(*) to the SELECT list.

SELECT COUNT(DISTINCT sex) FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT(DISTINCT sex)'
--> COUNT(DISTINCT sex) is not supported: one row alone can change it.
--> Count the rows of each value: SELECT sex, COUNT(*) ... GROUP BY sex.

SELECT COUNT() FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT'
--> The aggregate has no argument.
--> Write COUNT(*), or name a column.

SELECT SUM(*) FROM people
--> sql.unsupported, line 1, column 8, at 'SUM(*)'
--> The aggregate has no argument.
--> Write COUNT(*), or name a column.

SELECT SUM(sex) FROM people
--> sql.unsupported, line 1, column 12, at 'sex'
--> Column "sex" is not numeric.
--> Count its values: SELECT sex, COUNT(*) ... GROUP BY sex.

SELECT SUM(age_group) FROM people
--> sql.unsupported, line 1, column 12, at 'age_group'
--> Column "age_group" is not numeric.
--> Count its values: SELECT age_group, COUNT(*) ... GROUP BY age_group.

SELECT SUM('a') FROM people
--> sql.unsupported, line 1, column 12, at "'a'"
--> SUM and AVG require numbers, but 'a' is text.
--> Write a number.

SELECT MIN(age), MAX(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MIN'
--> Unsupported function "MIN".
--> One row alone decides it. Use PERCENTILE_CONT(0.01) WITHIN GROUP (ORDER BY age).
--> Also: Unsupported function "MAX". (line 1, column 18) One row alone decides it. Use PERCENTILE_CONT(0.99) WITHIN GROUP (ORDER BY age).

SELECT COUNT(*) OVER () FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT(*)'
--> COUNT(*) is not supported with OVER.
--> Use SUM or AVG of an aggregate, such as SUM(COUNT(*)) OVER (), or RANK().

SELECT COUNT(*) FROM people QUALIFY COUNT(*) > 1
--> sql.unsupported, line 1, column 29, at 'QUALIFY'
--> QUALIFY is not supported.
--> Write the window after OVER, and choose rows afterwards: SELECT * FROM (SELECT ..., RANK() OVER (ORDER BY COUNT(*) DESC) AS place ...) AS t WHERE place <= 5.

SELECT COUNT(*) FROM people JOIN visits USING (id)
--> sql.unsupported, line 1, column 29, at 'JOIN'
--> Joins are not supported.
--> Query one table, and compare its groups by FILTER (WHERE ...).

SELECT COUNT(*) FROM people, visits
--> sql.unsupported, line 1, column 30, at 'visits'
--> Joins are not supported.
--> Query one table, and compare its groups by FILTER (WHERE ...).

(SELECT COUNT(*) FROM people)
--> sql.unsupported, line 1, column 9, at 'COUNT(*) FROM people'
--> A subquery is only supported in FROM.
--> For a share, write COUNT(*) FILTER (WHERE ...) / COUNT(*).

SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people
--> sql.unsupported, line 1, column 29, at 'UNION'
--> UNION without ALL is not supported: noisy rows are never the same.
--> Write UNION ALL.

SELECT COUNT(*) FROM people UNION ALL SELECT AVG(age) FROM people
--> sql.unsupported, line 1, column 46, at 'AVG(age)'
--> Column 1 of UNION ALL is computed in different ways.
--> Compute the same in every SELECT, or ask them one by one.

SELECT sex, COUNT(*) FROM people GROUP BY sex UNION ALL SELECT age, COUNT(*) FROM people GROUP BY age
--> sql.unsupported, line 1, column 64, at 'age'
--> Column 1 of UNION ALL is number in one SELECT and text in another.
--> Compute the same in every SELECT, or ask them one by one.

SELECT SUM(income) FROM people UNION ALL SELECT SUM(income) FROM people WHERE age < 18
--> sql.unsupported, line 1, column 49, at 'SUM(income)'
--> Column 1 of UNION ALL is a sum over bins, which cannot be put below another.
--> Compute the same in every SELECT, or ask them one by one.

SELECT COUNT(*), sex FROM people GROUP BY sex UNION ALL SELECT COUNT(*) FROM people
--> sql.unsupported, line 1, column 64, at 'COUNT(*) FROM people'
--> The SELECTs of UNION ALL have 2 and 1 columns.
--> Give all of them the same number of columns.

SELECT COUNT(*) FROM people WHERE agee = 1 UNION ALL SELECT COUNT(*) FROM people WHERE sexx = 'F'
--> sql.unknown-name, line 1, column 35, at 'agee'
--> Unknown column "agee".
--> Did you mean "age"?
--> Also: Unknown column "sexx". (line 1, column 88) Did you mean "sex"?
--> suggestion: agee -> age

SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people ORDER BY age
--> sql.unsupported, line 1, column 76, at 'age'
--> ORDER BY age is not a column of the UNION ALL.
--> Name one of COUNT(*), or its position.

SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people LIMIT 1.5
--> sql.unsupported, line 1, column 73, at '1.5'
--> LIMIT requires a non-negative integer.
--> Example: LIMIT 10.

SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people HAVING COUNT(*) > 1
--> sql.unsupported, line 1, column 46, at 'COUNT(*) FROM people HAVING COUNT(*) > 1'
--> HAVING inside UNION ALL is not supported.
--> Ask the SELECT with HAVING on its own.

SELECT COUNT(*) FROM people GROUP BY 2
--> sql.unsupported, line 1, column 38, at '2'
--> Position 2 is not in the SELECT list.
--> The only position is 1.

SELECT COUNT(*) FROM people GROUP BY age, state, admitted, sex, employed
--> query.too-complex, line 1, column 38, at 'age, state, admitted, sex, employed'
--> The query asks for 92,880 numbers; the limit is 65,536.
--> Group by fewer columns, or by declared bins.

SELECT COUNT(*) FROM people HAVING age > 3
--> sql.unsupported, line 1, column 36, at 'age > 3'
--> "age > 3" must appear in GROUP BY or inside an aggregate.
--> Add age > 3 to GROUP BY, or remove it here.

SELECT sex AS age, age AS sex, COUNT(*) FROM people GROUP BY age, sex ORDER BY age
--> sql.unsupported, line 1, column 80, at 'age'
--> Ambiguous name "age".
--> Rename one of the columns with AS.

SELECT COUNT(*) FROM people HAVING COUNT(*) > 'a'
--> sql.unsupported, line 1, column 36, at "COUNT(*) > 'a'"
--> Cannot compare COUNT(*) (a number) with 'a' (text).
--> Compare values of the same type.

SELECT COUNT(*) FROM people ORDER BY age
--> sql.unsupported, line 1, column 38, at 'age'
--> Column "age" must appear in GROUP BY or inside an aggregate.
--> Add age to GROUP BY, or remove it here.

SELECT COUNT(*) FROM people ORDER BY 7
--> sql.unsupported, line 1, column 38, at '7'
--> Position 7 is not in the SELECT list.
--> The only position is 1.

SELECT COUNT(*) FROM people LIMIT -1
--> sql.unsupported, line 1, column 36, at '1'
--> LIMIT requires a non-negative integer.
--> Example: LIMIT 10.

SELECT COUNT(*) FROM people LIMIT 1.5
--> sql.unsupported, line 1, column 35, at '1.5'
--> LIMIT requires a non-negative integer.
--> Example: LIMIT 10.

SELECT COUNT(*) FROM people USING SAMPLE 10
--> sql.unsupported, line 1, column 29, at 'USING'
--> Sampling is not supported.
--> Remove the sampling clause.

SELECT COUNT(*) FROM people TABLESAMPLE (10 PERCENT)
--> sql.unsupported, line 1, column 29, at 'TABLESAMPLE'
--> Sampling is not supported.
--> Remove the sampling clause.

SELECT COUNT(*) FROM people; DROP TABLE people
--> sql.unsupported, line 1, column 28, at ';'
--> Multiple statements are not supported.
--> Run each SELECT as a separate query.

SELECT COUNT(*) FROM people;;
--> sql.unsupported, line 1, column 28, at ';'
--> Multiple statements are not supported.
--> Run each SELECT as a separate query.

DROP TABLE people
--> sql.unsupported, line 1, column 1, at 'DROP'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

INSERT INTO people VALUES (1)
--> sql.unsupported, line 1, column 1, at 'INSERT'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

PRAGMA database_list
--> sql.unsupported, line 1, column 1, at 'PRAGMA'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

ATTACH 'other.db'
--> sql.unsupported, line 1, column 1, at 'ATTACH'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

EXPLAIN SELECT COUNT(*) FROM people
--> sql.unsupported, line 1, column 1, at 'EXPLAIN'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

FROM people
--> sql.unsupported, line 1, column 1, at 'FROM'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

SELEC COUNT(*) FROM people
--> sql.unsupported, line 1, column 1, at 'SELEC'
--> Only SELECT is supported.
--> Example: SELECT COUNT(*) FROM people.

SELECT COUNT(*) FROM people WHERE
--> sql.syntax, line 1, column 29, at 'WHERE'
--> Syntax error at or near "WHERE".
--> Check the text just before this position.

SELECT COUNT(*) FROM people WHERE age >
--> sql.syntax, line 1, column 39, at '>'
--> Syntax error at or near ">".
--> Check the text just before this position.

SELECT COUNT(*) FROM people WHERE (age > 3
--> sql.syntax, line 1, column 35, at '('
--> Unclosed parenthesis.
--> Add ).

SELECT COUNT(*) FROM people WHERE age > 3)
--> sql.syntax, line 1, column 42, at ')'
--> Syntax error at or near ")".
--> Check the text just before this position.

SELECT COUNT(*) FROM people WHERE sex = 'F
--> sql.syntax, line 1, column 41, at "'F"
--> Unterminated quoted string.
--> Close the quote; write a quote inside a string twice, as in 'O''Brien'.

SELECT COUNT(*) FROM people WHERE age BETWEEN 3 5
--> sql.syntax, line 1, column 35, at 'age BETWEEN 3 5'
--> Missing AND.
--> Add AND.

SELECT SUM(CASE WHEN age > 3 1 END) FROM people
--> sql.syntax, line 1, column 22, at 'age > 3 1'
--> Missing THEN.
--> Add THEN.

SELECT COUNT(*), COUNT(age) FROM people GROUP BY sex, , employed
--> sql.syntax, line 1, column 53, at ','
--> Unexpected ",".
--> Remove it, or add what is missing next to it.

SELECT COUNT(*) FROM people GROUP
--> sql.syntax, line 1, column 29, at 'GROUP'
--> Unexpected "GROUP".
--> Remove it, or add what is missing next to it.

SELECT COUNT(*) FROM people GROUP BY
--> sql.unsupported, line 1, column 8, at 'COUNT(*) FROM people'
--> GROUP BY has no columns.
--> Name a column, or remove GROUP BY.

SELECT COUNT(*) FROM people WHERE age = 3 4
--> sql.syntax, line 1, column 43, at '4'
--> Syntax error at or near "4".
--> Check the text just before this position.

SELECT COUNT(*) FROM people WHERE sex = F
--> sql.unknown-name, line 1, column 41, at 'F'
--> Unknown column "F".
--> Write strings in single quotes: 'F'.
--> suggestion: F -> 'F'

SELECT MEDIAN(sex), AVG(agee), COUNT(*) FROM people WHERE state = 'Main'
--> sql.unsupported, line 1, column 8, at 'MEDIAN(sex)'
--> Quantiles require a column of numbers or dates, but "sex" has none.
--> Count its values: SELECT sex, COUNT(*) ... GROUP BY sex.
--> Also: Unknown column "agee". (line 1, column 25) Did you mean "age"?
--> Also: Unknown value 'Main' of column "state". (line 1, column 59) Did you mean 'Maine'?

SELECT sex, SUM(COUNT(*)) OVER () AS n FROM people GROUP BY sex HAVING COUNT(*) > 5
--> sql.unsupported, line 1, column 13, at 'SUM(COUNT(*))'
--> OVER cannot be combined with HAVING, which chooses the rows that it is over.
--> Choose rows afterwards: SELECT * FROM (SELECT ... OVER () ...) AS t WHERE n > 100.

SELECT AVG(n) FROM (SELECT state, COUNT(*) AS n FROM people GROUP BY state) AS t
--> sql.unsupported, line 1, column 8, at 'AVG(n) FROM (SELECT state, COUNT(*) AS n FROM people GROU...'
--> The result of GROUP BY cannot be aggregated again.
--> Add AVG(COUNT(*)) OVER () to the SELECT that has GROUP BY.

SELECT QUANTILE_CONT(age, 1) FROM people
--> sql.unsupported, line 1, column 8, at 'QUANTILE_CONT(age, 1)'
--> QUANTILE_CONT(age, 1) depends on one row alone.
--> Use the fraction 0.99.

SELECT COUNT(*) FROM people WHERE age => 18
--> sql.unsupported, line 1, column 39, at '=>'
--> Unsupported operator "=>".
--> Write >=.

SELECT STDDEV(state) FROM people
--> sql.unsupported, line 1, column 15, at 'state'
--> Column "state" is not numeric.
--> Count its values: SELECT state, COUNT(*) ... GROUP BY state.

SELECT XYZZY(state) FROM people
--> sql.unsupported, line 1, column 8, at 'XYZZY'
--> Unsupported function "XYZZY".
--> The functions of text are UPPER, LOWER, TRIM, LEFT, RIGHT, SUBSTRING, SPLIT_PART, REPLACE, LENGTH, STRPOS, CONCAT and those in docs/sql.md.

SELECT XYZZY(admitted) FROM people
--> sql.unsupported, line 1, column 8, at 'XYZZY'
--> Unsupported function "XYZZY".
--> The functions of dates are YEAR, QUARTER, MONTH, DATE_TRUNC, DATE_PART, DATE_DIFF and those in docs/sql.md.

SELECT XYZZY(age) FROM people
--> sql.unsupported, line 1, column 8, at 'XYZZY'
--> Unsupported function "XYZZY".
--> The functions of numbers are ABS, ROUND, FLOOR, CEIL, MOD, POWER, SQRT, LN, WIDTH_BUCKET and those in docs/sql.md; the aggregates SUM, AVG, MEDIAN and STDDEV.

SELECT XYZZY(1) FROM people
--> sql.unsupported, line 1, column 8, at 'XYZZY'
--> Unsupported function "XYZZY".
--> The aggregates are COUNT, SUM, AVG, MEDIAN, STDDEV and those in docs/sql.md.

SELECT ARG_MAX(state, age) FROM people
--> sql.unsupported, line 1, column 8, at 'ARG_MAX'
--> Unsupported function "ARG_MAX".
--> Single values are never returned. Count its values: SELECT state, COUNT(*) FROM people GROUP BY state.

SELECT admitted + INTERVAL 1 MONTH AS m, COUNT(*) FROM people GROUP BY m
--> sql.cuts-through-bin, line 1, column 8, at 'admitted + INTERVAL 1 MONTH'
--> admitted + INTERVAL 1 MONTH splits the bin of admitted from 2020-01-01 to 2020-02-01.
--> Use admitted itself, or split it at its edges: 2020-01-01, 2020-02-01, 2020-03-01, 2020-04-01, 2020-05-01, 2020-06-01 and 19 more.

DESCRIBE peopel
--> sql.unknown-name, None
--> Unknown table "peopel".
--> Write DESCRIBE people.

SELECT COUNT(*) FROM people WHERE state ~ '(New'
--> sql.unsupported, line 1, column 35, at "state ~ '(New'"
--> Unsupported regular expression '(New': a parenthesis is not closed.
--> Use characters, ., [...], (...), |, *, +, ?, {2}, {2,4}, ^, $, and (?i) at the start.
