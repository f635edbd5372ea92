SELECT COUNT(*) FROM people WHERE income < 12500
--> sql.cuts-through-bin, line 1, column 35, at 'income < 12500'
--> income < 12500 falls inside the bin from 10000 to 20000.
--> Write income < 10000 or income < 20000.

SELECT COUNT(*) FROM people WHERE 10000 >= income
--> sql.cuts-through-bin, line 1, column 35, at '10000 >= income'
--> income <= 10000 falls inside the bin from 10000 to 20000.
--> Write income < 10000 or income < 20000.

SELECT COUNT(*) FROM people WHERE income BETWEEN 10000 AND 20000
--> sql.cuts-through-bin, line 1, column 35, at 'income BETWEEN 10000 AND 20000'
--> income <= 20000 falls inside the bin from 20000 to 50000.
--> Write income < 20000 or income < 50000.

SELECT COUNT(*) FROM people WHERE income = 15000
--> sql.cuts-through-bin, line 1, column 35, at 'income = 15000'
--> income = 15000 falls inside the bin from 10000 to 20000.
--> Write income >= 10000 AND income < 20000.

SELECT COUNT(*) FROM people WHERE income IN (1, 2)
--> sql.cuts-through-bin, line 1, column 46, at '1'
--> income = 1 falls inside the bin from 0 to 10000.
--> Write income >= 0 AND income < 10000.

SELECT COUNT(*) FROM people WHERE admitted = DATE '2020-01-31'
--> sql.cuts-through-bin, line 1, column 35, at "admitted = DATE '2020-01-31'"
--> admitted = DATE '2020-01-31' falls inside the bin from 2020-01-01 to 2020-02-01.
--> Write admitted >= DATE '2020-01-01' AND admitted < DATE '2020-02-01'.

SELECT COUNT(*) FROM people WHERE admitted <> '2020-02-10'
--> sql.cuts-through-bin, line 1, column 35, at "admitted <> '2020-02-10'"
--> admitted <> '2020-02-10' falls inside the bin from 2020-02-01 to 2020-03-01.
--> Write admitted < DATE '2020-02-01' OR admitted >= DATE '2020-03-01'.

SELECT COUNT(*) FROM people WHERE admitted > '2020-02-10'
--> sql.cuts-through-bin, line 1, column 35, at "admitted > '2020-02-10'"
--> admitted > '2020-02-10' falls inside the bin from 2020-02-01 to 2020-03-01.
--> Write admitted >= DATE '2020-02-01' or admitted >= DATE '2020-03-01'.

SELECT COUNT(*) FROM persons
--> sql.unknown-name, line 1, column 22, at 'persons'
--> There is no table persons.
--> Write FROM people.

SELECT COUNT(*) FROM "People"
--> sql.unknown-name, line 1, column 22, at '"People"'
--> There is no table People.
--> Write FROM people.

SELECT COUNT(*) FROM main.people
--> sql.unsupported, line 1, column 22, at 'main'
--> This part of the SQL is not answered.
--> Leave it out.

SELECT COUNT(*)
--> sql.unsupported, line 1, column 8, at 'COUNT(*)'
--> The SQL does not say FROM which table.
--> Add FROM people.

SELECT COUNT(*) FROM people WHERE agee > 3
--> sql.unknown-name, line 1, column 35, at 'agee'
--> There is no column agee.
--> Did you mean age?

SELECT COUNT(*) FROM people WHERE "AGE" > 3
--> sql.unknown-name, line 1, column 35, at '"AGE"'
--> There is no column AGE.
--> Did you mean age?

SELECT COUNT(*) FROM people WHERE q.age > 3
--> sql.unknown-name, line 1, column 35, at 'q.age'
--> There is no table q.
--> Write people.age, or the column alone.

SELECT COUNT(*) FROM people
WHERE age > 3
  AND zip = 12345
--> sql.unknown-name, line 3, column 7, at 'zip'
--> There is no column zip.
--> The columns are age, age_group, sex, income, employed, admitted, admitted_year, state, size.

SELECT COUNT(*) FROM people WHERE state = 'new york'
--> sql.unknown-name, line 1, column 35, at "state = 'new york'"
--> 'new york' is not a value of state.
--> Did you mean 'New York'?

SELECT COUNT(*) FROM people WHERE state IN ('Maine', 'Texas')
--> sql.unknown-name, line 1, column 54, at "'Texas'"
--> 'Texas' is not a value of state.
--> Its values are 'Maine', 'Massachusetts', 'New Hampshire', 'New York', 'Vermont'.

SELECT COUNT(*) FROM people WHERE age_group = '18-65'
--> sql.unknown-name, line 1, column 35, at "age_group = '18-65'"
--> '18-65' is not a value of age_group.
--> Did you mean '18-64'?

SELECT COUNT(*) FROM people WHERE sex = 1
--> sql.unsupported, line 1, column 35, at 'sex = 1'
--> sex holds text, and 1 is a number.
--> Write it in quotes, as in sex = 'F'.

SELECT COUNT(*) FROM people WHERE age = '42'
--> sql.unsupported, line 1, column 35, at "age = '42'"
--> age holds numbers, and '42' is text.
--> Write 42, without quotes.

SELECT COUNT(*) FROM people WHERE age < 'old'
--> sql.unsupported, line 1, column 35, at "age < 'old'"
--> age holds numbers, and 'old' is text.
--> Compare it with a number.

SELECT COUNT(*) FROM people WHERE employed = 1
--> sql.unsupported, line 1, column 35, at 'employed = 1'
--> employed is true or false, and 1 is a number.
--> Write employed = TRUE or employed = FALSE.

SELECT COUNT(*) FROM people WHERE employed > FALSE
--> sql.unsupported, line 1, column 35, at 'employed'
--> employed has no order, so > is not answered for it.
--> Use =, <>, IN or IS NULL.

SELECT COUNT(*) FROM people WHERE admitted > 2020
--> sql.unsupported, line 1, column 35, at 'admitted > 2020'
--> admitted holds days, and 2020 is a number.
--> Write days as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE admitted > 'May 2020'
--> sql.unsupported, line 1, column 35, at "admitted > 'May 2020'"
--> admitted holds days, and 'May 2020' is text.
--> Write days as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE admitted > DATE '2020-02-30'
--> sql.unsupported, line 1, column 51, at "'2020-02-30'"
--> '2020-02-30' is not a day.
--> Write days as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE age = CAST('4' AS INTEGER)
--> sql.unsupported, line 1, column 53, at 'INTEGER'
--> Values are not cast to other types.
--> Write them as they are, and days as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE sex < 'M'
--> sql.unsupported, line 1, column 35, at "sex < 'M'"
--> sex has no order, so < is not answered for it.
--> Use =, <>, IN, LIKE or IS NULL.

SELECT COUNT(*) FROM people WHERE age LIKE '4%'
--> sql.unsupported, line 1, column 35, at "age LIKE '4%'"
--> LIKE is for text, and age is not text.
--> Compare it with a value, as in age = 0.

SELECT COUNT(*) FROM people WHERE state LIKE 5
--> sql.unsupported, line 1, column 35, at 'state LIKE 5'
--> LIKE compares a column of text with a pattern in single quotes.
--> Write, for example, state LIKE 'New%'.

SELECT COUNT(*) FROM people WHERE state LIKE 'a!' ESCAPE '!'
--> sql.unsupported, line 1, column 35, at "state LIKE 'a!'"
--> The pattern ends with its escape character.
--> Write it twice.

SELECT COUNT(*) FROM people WHERE state LIKE 'a' ESCAPE '!!'
--> sql.unsupported, line 1, column 35, at "state LIKE 'a'"
--> ESCAPE takes one character.
--> Write, for example, ESCAPE '!'.

SELECT COUNT(*) FROM people WHERE state ILIKE 'new%'
--> sql.unsupported, line 1, column 41, at 'ILIKE'
--> Of the text comparisons only =, <>, IN and LIKE are answered.
--> Use LIKE with % and _.

SELECT COUNT(*) FROM people WHERE age
--> sql.unsupported, line 1, column 35, at 'age'
--> age is no condition by itself: it is not true or false.
--> Compare it with a value, as in age = 0.

SELECT COUNT(*) FROM people WHERE 'yes'
--> sql.unsupported, line 1, column 35, at "'yes'"
--> There should be a condition here.
--> Compare a column with a value, as in age >= 20.

SELECT COUNT(*) FROM people WHERE age > income
--> sql.unsupported, line 1, column 35, at 'age > income'
--> A column is compared with constants only.
--> Compare each column with a constant of its own.

SELECT COUNT(*) FROM people WHERE age * 2 > 60
--> sql.unsupported, line 1, column 35, at 'age'
--> Columns are not computed with.
--> Use the column by itself: age > 20 instead of age - 10 > 10.

SELECT COUNT(*) FROM people WHERE age % 2 = 0
--> sql.unsupported, line 1, column 39, at '%'
--> Constants are computed with + - * and / only.
--> Write the number itself.

SELECT COUNT(*) FROM people WHERE age > 1 / 0
--> sql.unsupported, line 1, column 41, at '1 / 0'
--> The constant divides by zero.
--> Write the number.

SELECT COUNT(*) FROM people WHERE age > 1e99 * 1e99
--> sql.unsupported, line 1, column 41, at '1e99 * 1e99'
--> The number has more digits than are computed with.
--> Round it to fewer digits.

SELECT COUNT(*) FROM people WHERE age > 1e999999999
--> sql.unsupported, line 1, column 41, at '1e999999999'
--> 1e999999999 is not a number as they are read here.
--> Write it as 12.5 or 1e6, with fewer than 100 digits.

SELECT COUNT(*) FROM people WHERE age > 'a' + 1
--> sql.unsupported, line 1, column 41, at "'a'"
--> Only numbers are computed with, and 'a' is text.
--> Write the value itself.

SELECT COUNT(*) FROM people WHERE age IN ()
--> sql.unsupported, line 1, column 35, at 'age'
--> IN has an empty list.
--> List at least one value.

SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)
--> sql.unsupported, line 1, column 43, at 'SELECT'
--> Subqueries are not answered.
--> Write their conditions into WHERE.

SELECT COUNT(*) FROM people WHERE age IS 3
--> sql.unsupported, line 1, column 35, at 'age IS 3'
--> IS takes NULL, TRUE or FALSE.
--> Use = for values.

SELECT COUNT(*) FROM people WHERE 1 = 'a'
--> sql.unsupported, line 1, column 35, at "1 = 'a'"
--> 1 is a number, and 'a' is text.
--> Compare like with like.

SELECT COUNT(*) FROM people WHERE COUNT(*) > 3
--> sql.unsupported, line 1, column 35, at 'COUNT(*)'
--> An aggregate cannot stand here.
--> Put it into the SELECT list, HAVING or ORDER BY, by itself.

SELECT COUNT(*) FROM people WHERE age = ?
--> sql.unsupported, line 1, column 41, at '?'
--> Parameters are not filled in.
--> Write the value itself.

SELECT COUNT(*) FROM people WHERE age = $1
--> sql.unsupported, line 1, column 41, at '$'
--> Parameters are not filled in.
--> Write the value itself.

SELECT COUNT(*) FROM people WHERE age = :age
--> sql.unsupported, line 1, column 41, at ':'
--> Parameters are not filled in.
--> Write the value itself.

SELECT COUNT(*) FROM people WHERE admitted > CURRENT_DATE
--> sql.unsupported, line 1, column 46, at 'CURRENT_DATE'
--> The present time and spans of time are not answered.
--> Write days as DATE '2024-12-31'.

SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1)
--> sql.unsupported, line 1, column 35, at 'EXISTS'
--> Subqueries are not answered.
--> Write their conditions into WHERE.

SELECT COUNT(*) FROM people WHERE (age, sex) = (1, 'F')
--> sql.unsupported, line 1, column 36, at 'age, sex'
--> This part of the SQL is not answered.
--> Leave it out.

SELECT COUNT(*) FROM people WHERE lower(sex) = 'f'
--> sql.unsupported, line 1, column 35, at 'lower'
--> The function lower is not answered.
--> Use COUNT, SUM or AVG; write days as DATE '2024-12-31'.

SELECT * FROM people
--> sql.unsupported, line 1, column 8, at '*'
--> SELECT * is not answered: no single row is ever shown.
--> Write SELECT COUNT(*).

SELECT p.* FROM people p
--> sql.unsupported, line 1, column 8, at 'p.*'
--> SELECT * is not answered: no single row is ever shown.
--> Write SELECT COUNT(*).

SELECT age FROM people
--> sql.unsupported, line 1, column 8, at 'age'
--> age is neither grouped nor inside an aggregate.
--> Add age to GROUP BY, or take it out here.

SELECT sex FROM people GROUP BY sex
--> sql.unsupported, line 1, column 8, at 'sex FROM people GROUP BY sex'
--> The SQL asks for no COUNT, SUM or AVG.
--> Add COUNT(*) after SELECT.

SELECT age_group, COUNT(*) FROM people GROUP BY age
--> sql.unsupported, line 1, column 8, at 'age_group'
--> age_group is neither grouped nor inside an aggregate.
--> Add age_group to GROUP BY, or take it out here.

SELECT 1 FROM people
--> sql.unsupported, line 1, column 8, at '1'
--> SELECT takes aggregates and grouped columns.
--> Use COUNT, SUM or AVG by themselves.

SELECT COUNT(*) + 1 FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT(*) + 1'
--> SELECT takes aggregates and grouped columns.
--> Use COUNT, SUM or AVG by themselves.

SELECT DISTINCT sex FROM people
--> sql.unsupported, line 1, column 8, at 'DISTINCT'
--> DISTINCT is not answered: rows are counted, not different values.
--> Leave DISTINCT out, or GROUP BY the column.

SELECT COUNT(DISTINCT sex) FROM people
--> sql.unsupported, line 1, column 14, at 'DISTINCT'
--> DISTINCT is not answered: rows are counted, not different values.
--> Leave DISTINCT out, or GROUP BY the column.

SELECT COUNT() FROM people
--> sql.unsupported, line 1, column 8, at 'COUNT'
--> The aggregate has nothing to add up.
--> Write COUNT(*), or name a column.

SELECT SUM(*) FROM people
--> sql.unsupported, line 1, column 8, at 'SUM(*)'
--> The aggregate has nothing to add up.
--> Write COUNT(*), or name a column.

SELECT SUM(sex) FROM people
--> sql.unsupported, line 1, column 12, at 'sex'
--> sex has no numbers to add up.
--> SUM and AVG take columns of numbers, or of true and false; COUNT takes any.

SELECT SUM(age_group) FROM people
--> sql.unsupported, line 1, column 12, at 'age_group'
--> age_group has no numbers to add up.
--> SUM and AVG take columns of numbers, or of true and false; COUNT takes any.

SELECT SUM('a') FROM people
--> sql.unsupported, line 1, column 12, at "'a'"
--> There should be a number here, and 'a' is text.
--> SUM and AVG add up numbers.

SELECT SUM(CASE WHEN age > 3 THEN income END) FROM people
--> sql.unsupported, line 1, column 35, at 'income'
--> The branches of a CASE are numbers here, not columns.
--> Write SUM(income) FILTER (WHERE ...) to add up a column on some rows.

SELECT SUM(CASE sex WHEN 'F' THEN 1 END) FROM people
--> sql.unsupported, line 1, column 17, at 'sex'
--> CASE takes conditions.
--> Write CASE WHEN sex = 'F' THEN 1 END.

SELECT SUM(age + 1) FROM people
--> sql.unsupported, line 1, column 12, at 'age'
--> Columns are not computed with.
--> Use the column by itself: age > 20 instead of age - 10 > 10.

SELECT MEDIAN(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MEDIAN'
--> The function MEDIAN is not answered.
--> Use COUNT, SUM or AVG; write days as DATE '2024-12-31'.

SELECT MIN(age), MAX(age) FROM people
--> sql.unsupported, line 1, column 8, at 'MIN'
--> The function MIN is not answered.
--> Use COUNT, SUM or AVG; write days as DATE '2024-12-31'.

SELECT COUNT(*) OVER () FROM people
--> sql.unsupported, line 1, column 17, at 'OVER'
--> Window functions are not answered.
--> Use GROUP BY, and compute on the result.

SELECT COUNT(*) FROM people QUALIFY COUNT(*) > 1
--> sql.unsupported, line 1, column 29, at 'QUALIFY'
--> Window functions are not answered.
--> Use GROUP BY, and compute on the result.

SELECT COUNT(*) FROM people JOIN visits USING (id)
--> sql.unsupported, line 1, column 29, at 'JOIN'
--> Joins are not answered: a question is about one table.
--> Name one table after FROM.

SELECT COUNT(*) FROM people, visits
--> sql.unsupported, line 1, column 30, at 'visits'
--> Joins are not answered: a question is about one table.
--> Name one table after FROM.

SELECT COUNT(*) FROM (SELECT * FROM people)
--> sql.unsupported, line 1, column 23, at 'SELECT'
--> Subqueries are not answered.
--> Write their conditions into WHERE.

WITH adults AS (SELECT * FROM people) SELECT COUNT(*) FROM adults
--> sql.unsupported, line 1, column 1, at 'WITH'
--> WITH is not answered.
--> Write its conditions into WHERE.

(SELECT COUNT(*) FROM people)
--> sql.unsupported, line 1, column 1, at '('
--> Subqueries are not answered.
--> Write their conditions into WHERE.

SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people
--> sql.unsupported, line 1, column 29, at 'UNION'
--> UNION, EXCEPT and INTERSECT are not answered.
--> Ask each SELECT as a question of its own.

SELECT COUNT(*) FROM people GROUP BY age + 1
--> sql.unsupported, line 1, column 38, at 'age + 1'
--> GROUP BY takes columns and declared bins.
--> Name them, or give their numbers.

SELECT COUNT(*) FROM people GROUP BY 2
--> sql.unsupported, line 1, column 38, at '2'
--> There is no column number 2.
--> Give a number from 1 to 1.

SELECT COUNT(*) FROM people GROUP BY ROLLUP (age)
--> sql.unsupported, line 1, column 38, at 'ROLLUP'
--> GROUP BY takes plain columns and declared bins.
--> List them: GROUP BY age_group, sex.

SELECT COUNT(*) FROM people GROUP BY ALL
--> sql.unsupported, line 1, column 38, at 'ALL'
--> ALL is not part of the SQL that is answered.
--> If it is a name, write it in double quotes: "ALL".

SELECT COUNT(*) FROM people GROUP BY age, state, admitted, sex, employed
--> query.too-complex, line 1, column 38, at 'age, state, admitted, sex, employed'
--> The SQL asks for 92,880 numbers, and 65,536 at most are answered.
--> Group by fewer columns, or by declared bins.

SELECT COUNT(*) FROM people HAVING age > 3
--> sql.unsupported, line 1, column 36, at 'age'
--> age is neither grouped nor inside an aggregate.
--> Add age to GROUP BY, or take it out here.

SELECT sex AS age, age AS sex, COUNT(*) FROM people GROUP BY age, sex ORDER BY age
--> sql.unsupported, line 1, column 80, at 'age'
--> age could mean two things here.
--> Give one of them another name with AS.

SELECT COUNT(*) FROM people HAVING COUNT(*) > 'a'
--> sql.unsupported, line 1, column 36, at "COUNT(*) > 'a'"
--> An aggregate is a number, and 'a' is text.
--> Compare it with a number.

SELECT age, COUNT(*) FROM people GROUP BY age HAVING age > COUNT(*)
--> sql.unsupported, line 1, column 54, at 'age > COUNT(*)'
--> A column is compared with constants only.
--> Compare each column with a constant of its own.

SELECT COUNT(*) FROM people ORDER BY age
--> sql.unsupported, line 1, column 38, at 'age'
--> age is neither grouped nor inside an aggregate.
--> Add age to GROUP BY, or take it out here.

SELECT COUNT(*) FROM people ORDER BY 1 + 1
--> sql.unsupported, line 1, column 38, at '1 + 1'
--> ORDER BY takes columns of the result.
--> Use a name, a number or an aggregate.

SELECT COUNT(*) FROM people ORDER BY 7
--> sql.unsupported, line 1, column 38, at '7'
--> There is no column number 7.
--> Give a number from 1 to 1.

SELECT COUNT(*) FROM people LIMIT -1
--> sql.unsupported, line 1, column 36, at '1'
--> LIMIT takes a number of rows.
--> Write, for example, LIMIT 10.

SELECT COUNT(*) FROM people LIMIT 1.5
--> sql.unsupported, line 1, column 35, at '1.5'
--> LIMIT takes a number of rows.
--> Write, for example, LIMIT 10.

SELECT COUNT(*) FROM people LIMIT 10 OFFSET 5
--> sql.unsupported, line 1, column 38, at 'OFFSET'
--> OFFSET and FETCH are not answered.
--> Use ORDER BY and LIMIT.

SELECT COUNT(*) FROM people USING SAMPLE 10
--> sql.unsupported, line 1, column 29, at 'USING'
--> Samples are not answered: every row is counted.
--> Leave the sample out.

SELECT COUNT(*) FROM people TABLESAMPLE (10 PERCENT)
--> sql.unsupported, line 1, column 29, at 'TABLESAMPLE'
--> Samples are not answered: every row is counted.
--> Leave the sample out.

SELECT COUNT(*) FROM people -- all of them
--> sql.unsupported, line 1, column 29, at '-- all of them'
--> Comments are not read.
--> Take the comment out.

SELECT /* all */ COUNT(*) FROM people
--> sql.unsupported, line 1, column 8, at '/* all */'
--> Comments are not read.
--> Take the comment out.

SELECT COUNT(*) FROM people; DROP TABLE people
--> sql.unsupported, line 1, column 28, at ';'
--> Only one statement is answered at a time.
--> Ask each SELECT as a question of its own.

SELECT COUNT(*) FROM people;;
--> sql.unsupported, line 1, column 28, at ';'
--> Only one statement is answered at a time.
--> Ask each SELECT as a question of its own.

DROP TABLE people
--> sql.unsupported, line 1, column 1, at 'DROP'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

INSERT INTO people VALUES (1)
--> sql.unsupported, line 1, column 1, at 'INSERT'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

PRAGMA database_list
--> sql.unsupported, line 1, column 1, at 'PRAGMA'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

ATTACH 'other.db'
--> sql.unsupported, line 1, column 1, at 'ATTACH'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

EXPLAIN SELECT COUNT(*) FROM people
--> sql.unsupported, line 1, column 1, at 'EXPLAIN'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

FROM people
--> sql.unsupported, line 1, column 1, at 'FROM'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

SELEC COUNT(*) FROM people
--> sql.unsupported, line 1, column 1, at 'SELEC'
--> Only SELECT is answered.
--> Write, for example, SELECT COUNT(*) FROM people.

SELECT COUNT(*) FROM people WHERE
--> sql.syntax, line 1, column 29, at 'WHERE'
--> This is not SQL as it is read here.
--> Look at the words just before this place.

SELECT COUNT(*) FROM people WHERE age >
--> sql.syntax, line 1, column 39, at '>'
--> This is not SQL as it is read here.
--> Look at the words just before this place.

SELECT COUNT(*) FROM people WHERE (age > 3
--> sql.syntax, line 1, column 35, at '('
--> A parenthesis is not closed.
--> Close it where it ends.

SELECT COUNT(*) FROM people WHERE age > 3)
--> sql.syntax, line 1, column 42, at ')'
--> This is not SQL as it is read here.
--> Look at the words just before this place.

SELECT COUNT(*) FROM people WHERE sex = 'F
--> sql.syntax, line 1, column 41, at "'F"
--> A quote is opened and never closed.
--> Close it; a quote inside a text is written twice, as in 'O''Brien'.

SELECT COUNT(*) FROM people WHERE age BETWEEN 3 5
--> sql.syntax, line 1, column 35, at 'age BETWEEN 3 5'
--> AND is missing.
--> Add it where it belongs.

SELECT SUM(CASE WHEN age > 3 1 END) FROM people
--> sql.syntax, line 1, column 22, at 'age > 3 1'
--> THEN is missing.
--> Add it where it belongs.

SELECT COUNT(*), COUNT(age) FROM people GROUP BY sex, , employed
--> sql.syntax, line 1, column 53, at ','
--> , is out of place, or a word next to it is missing.
--> Look at the words around it.

SELECT COUNT(*) FROM people GROUP
--> sql.syntax, line 1, column 29, at 'GROUP'
--> GROUP is out of place, or a word next to it is missing.
--> Look at the words around it.

SELECT COUNT(*) FROM people GROUP BY
--> sql.unsupported, line 1, column 8, at 'COUNT(*) FROM people'
--> GROUP BY names no column.
--> Name one, or leave it out.

SELECT COUNT(*) FROM people WHERE age = 3 4
--> sql.syntax, line 1, column 43, at '4'
--> This is not SQL as it is read here.
--> Look at the words just before this place.
