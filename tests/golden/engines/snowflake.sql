SELECT
  code_0,
  code_1,
  code_2,
  code_3,
  code_4,
  code_5,
  code_6,
  code_7,
  COUNT(*) AS count,
  COUNT(value_0) AS values_0,
  CAST(COALESCE(SUM(value_0), 0) AS BIGINT) AS sum_0
FROM (
  SELECT
    code_0,
    code_1,
    code_2,
    code_3,
    code_4,
    code_5,
    code_6,
    code_7,
    value_0
  FROM (
    SELECT
      code_0,
      code_1,
      code_2,
      code_3,
      code_4,
      code_5,
      code_6,
      code_7,
      value_0,
      ROW_NUMBER() OVER (
        PARTITION BY person
        ORDER BY CASE
          WHEN own > 2
          THEN MD5(
            'key' || '|' || COALESCE(CAST(person AS VARCHAR), '') || '|' || COALESCE(CAST(code_0 AS VARCHAR), '') || '|' || COALESCE(CAST(code_1 AS VARCHAR), '') || '|' || COALESCE(CAST(code_2 AS VARCHAR), '') || '|' || COALESCE(CAST(code_3 AS VARCHAR), '') || '|' || COALESCE(CAST(code_4 AS VARCHAR), '') || '|' || COALESCE(CAST(code_5 AS VARCHAR), '') || '|' || COALESCE(CAST(code_6 AS VARCHAR), '') || '|' || COALESCE(CAST(code_7 AS VARCHAR), '') || '|' || COALESCE(CAST(value_0 AS VARCHAR), '') || '|' || COALESCE(CAST(occurrence AS VARCHAR), '')
          )
        END
      ) AS place
    FROM (
      SELECT
        code_0,
        code_1,
        code_2,
        code_3,
        code_4,
        code_5,
        code_6,
        code_7,
        value_0,
        person,
        ROW_NUMBER() OVER (
          PARTITION BY person
          ORDER BY code_0, code_1, code_2, code_3, code_4, code_5, code_6, code_7, value_0
        ) AS occurrence,
        COUNT(*) OVER (PARTITION BY person) AS own
      FROM (
        SELECT
          CAST(CASE
            WHEN "age" IS NULL OR CAST("age" AS DOUBLE) = CAST('NaN' AS DOUBLE)
            THEN 86
            ELSE CAST(CAST("age" AS DOUBLE) AS INT) - 0
          END AS TINYINT) AS code_0,
          CAST(CASE
            WHEN CASE
              WHEN REGEXP_LIKE(
                COLLATE("visits", ''),
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN TRY_TO_DOUBLE(COLLATE("visits", ''))
            END BETWEEN 0 AND 9
            AND CASE
              WHEN REGEXP_LIKE(
                COLLATE("visits", ''),
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN TRY_TO_DOUBLE(COLLATE("visits", ''))
            END = FLOOR(
              CASE
                WHEN REGEXP_LIKE(
                  COLLATE("visits", ''),
                  '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
                )
                THEN TRY_TO_DOUBLE(COLLATE("visits", ''))
              END
            )
            THEN CAST(CASE
              WHEN REGEXP_LIKE(
                COLLATE("visits", ''),
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN TRY_TO_DOUBLE(COLLATE("visits", ''))
            END AS INT) - 0
            ELSE 10
          END AS TINYINT) AS code_1,
          CAST(CASE
            WHEN "income" < 0.1e0
            THEN 0
            ELSE CASE WHEN "income" < 10.0e0 THEN 1 ELSE 2 END
          END AS TINYINT) AS code_2,
          CAST(CASE
            WHEN COLLATE("state", '') IN ('MA', 'it\'s', 'ma')
            THEN CASE
              WHEN COLLATE("state", '') < 'it\'s'
              THEN 0
              ELSE CASE WHEN COLLATE("state", '') < 'ma' THEN 2 ELSE 1 END
            END
            ELSE 3
          END AS TINYINT) AS code_3,
          CAST(CASE WHEN "member" THEN 1 ELSE 0 END AS TINYINT) AS code_4,
          CAST((
            (
              CAST(DATE_PART(YEAR, "born") AS INT) * 12
            ) + CAST(DATE_PART(MONTH, "born") AS INT)
          ) - 24241 AS TINYINT) AS code_5,
          CAST(CASE
            WHEN CONVERT_TIMEZONE('UTC', "seen") IS NULL
            THEN 60
            ELSE CAST(TRUNC(
              DATEDIFF(DAY, CAST('2020-01-13' AS DATE), CAST(CONVERT_TIMEZONE('UTC', "seen") AS DATE)) / 7
            ) AS BIGINT)
          END AS TINYINT) AS code_6,
          CAST((
            (
              CAST(DATE_PART(
                YEAR,
                CASE
                  WHEN LENGTH(COLLATE("said", '')) <= 10
                  THEN CASE
                    WHEN REGEXP_LIKE(COLLATE("said", ''), '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                    THEN TRY_TO_DATE(COLLATE("said", ''))
                  END
                  ELSE CAST(CASE
                    WHEN REGEXP_LIKE(
                      COLLATE("said", ''),
                      '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                    )
                    THEN CONVERT_TIMEZONE('UTC', TRY_TO_TIMESTAMP_TZ(COLLATE("said", '')))
                  END AS DATE)
                END
              ) AS INT) * 4
            ) + CAST(DATE_PART(
              QUARTER,
              CASE
                WHEN LENGTH(COLLATE("said", '')) <= 10
                THEN CASE
                  WHEN REGEXP_LIKE(COLLATE("said", ''), '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                  THEN TRY_TO_DATE(COLLATE("said", ''))
                END
                ELSE CAST(CASE
                  WHEN REGEXP_LIKE(
                    COLLATE("said", ''),
                    '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                  )
                  THEN CONVERT_TIMEZONE('UTC', TRY_TO_TIMESTAMP_TZ(COLLATE("said", '')))
                END AS DATE)
              END
            ) AS INT)
          ) - 8081 AS TINYINT) AS code_7,
          CASE
            WHEN NOT (
              CAST("fee" AS DOUBLE) IS NULL OR CAST("fee" AS DOUBLE) = CAST('NaN' AS DOUBLE)
            )
            THEN CAST(LEAST_IGNORE_NULLS(
              ROUND(
                (
                  LEAST_IGNORE_NULLS(GREATEST_IGNORE_NULLS(CAST("fee" AS DOUBLE), 0.0e0), 100.0e0) - 0.0e0
                ) / 1.0e0
              ),
              100.0e0
            ) AS BIGINT) + -50
          END AS value_0,
          COLLATE("person", '') AS person
        FROM clinic.visits
        WHERE
          (
            (
              (
                "age" IS NULL OR CAST("age" AS DOUBLE) = CAST('NaN' AS DOUBLE)
              )
              OR (
                CAST("age" AS DOUBLE) BETWEEN 0 AND 85
                AND CAST("age" AS DOUBLE) = FLOOR(CAST("age" AS DOUBLE))
              )
            )
            AND (
              "income" >= 0.0e0 AND "income" < 100.0e0
            )
            AND NOT "member" IS NULL
            AND "born" BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
            AND (
              CONVERT_TIMEZONE('UTC', "seen") IS NULL
              OR CAST(CONVERT_TIMEZONE('UTC', "seen") AS DATE) BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
            )
            AND CASE
              WHEN LENGTH(COLLATE("said", '')) <= 10
              THEN CASE
                WHEN REGEXP_LIKE(COLLATE("said", ''), '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                THEN TRY_TO_DATE(COLLATE("said", ''))
              END
              ELSE CAST(CASE
                WHEN REGEXP_LIKE(
                  COLLATE("said", ''),
                  '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                )
                THEN CONVERT_TIMEZONE('UTC', TRY_TO_TIMESTAMP_TZ(COLLATE("said", '')))
              END AS DATE)
            END BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
          )
          AND NOT COLLATE("person", '') IS NULL
      ) AS coded
    ) AS numbered
  ) AS placed
  WHERE
    place <= 2
) AS people
GROUP BY
  code_0,
  code_1,
  code_2,
  code_3,
  code_4,
  code_5,
  code_6,
  code_7
