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
          THEN LOWER(
            TO_HEX(
              MD5(
                TO_UTF8(
                  CONCAT(
                    CAST('key' AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(person AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_0 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_1 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_2 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_3 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_4 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_5 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_6 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(code_7 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(value_0 AS VARCHAR), '') AS VARCHAR),
                    CAST('|' AS VARCHAR),
                    CAST(COALESCE(CAST(occurrence AS VARCHAR), '') AS VARCHAR)
                  )
                )
              )
            )
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
          CAST(CASE WHEN "age" IS NULL THEN 86 ELSE CAST("age" AS INTEGER) - 0 END AS TINYINT) AS code_0,
          CAST(CASE
            WHEN CASE
              WHEN REGEXP_LIKE(
                "visits",
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN TRY_CAST("visits" AS DOUBLE)
            END BETWEEN 0 AND 9
            AND CASE
              WHEN REGEXP_LIKE(
                "visits",
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN TRY_CAST("visits" AS DOUBLE)
            END = FLOOR(
              CASE
                WHEN REGEXP_LIKE(
                  "visits",
                  '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
                )
                THEN TRY_CAST("visits" AS DOUBLE)
              END
            )
            THEN CAST(CASE
              WHEN REGEXP_LIKE(
                "visits",
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN TRY_CAST("visits" AS DOUBLE)
            END AS INTEGER) - 0
            ELSE 10
          END AS TINYINT) AS code_1,
          CAST(CASE
            WHEN "income" < 0.1e0
            THEN 0
            ELSE CASE WHEN "income" < 10.0e0 THEN 1 ELSE 2 END
          END AS TINYINT) AS code_2,
          CAST(CASE
            WHEN "state" IN ('MA', 'it''s', 'ma')
            THEN CASE
              WHEN "state" < 'it''s'
              THEN 0
              ELSE CASE WHEN "state" < 'ma' THEN 2 ELSE 1 END
            END
            ELSE 3
          END AS TINYINT) AS code_3,
          CAST(CASE WHEN "member" THEN 1 ELSE 0 END AS TINYINT) AS code_4,
          CAST((
            (
              CAST(EXTRACT(YEAR FROM "born") AS INTEGER) * 12
            ) + CAST(EXTRACT(MONTH FROM "born") AS INTEGER)
          ) - 24241 AS TINYINT) AS code_5,
          CAST(CASE
            WHEN AT_TIMEZONE("seen", 'UTC') IS NULL
            THEN 60
            ELSE CAST(TRUNCATE(
              CAST(DATE_DIFF('DAY', CAST('2020-01-13' AS DATE), CAST(AT_TIMEZONE("seen", 'UTC') AS DATE)) AS DOUBLE) / 7
            ) AS BIGINT)
          END AS TINYINT) AS code_6,
          CAST((
            (
              CAST(EXTRACT(YEAR FROM CASE
                WHEN LENGTH("said") <= 10
                THEN CASE
                  WHEN REGEXP_LIKE("said", '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                  THEN TRY_CAST("said" AS DATE)
                END
                ELSE CAST(CASE
                  WHEN REGEXP_LIKE(
                    "said",
                    '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                  )
                  THEN TRY(AT_TIMEZONE(FROM_ISO8601_TIMESTAMP(REPLACE("said", ' ', 'T')), 'UTC'))
                END AS DATE)
              END) AS INTEGER) * 4
            ) + CAST(EXTRACT(QUARTER FROM CASE
              WHEN LENGTH("said") <= 10
              THEN CASE
                WHEN REGEXP_LIKE("said", '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                THEN TRY_CAST("said" AS DATE)
              END
              ELSE CAST(CASE
                WHEN REGEXP_LIKE(
                  "said",
                  '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                )
                THEN TRY(AT_TIMEZONE(FROM_ISO8601_TIMESTAMP(REPLACE("said", ' ', 'T')), 'UTC'))
              END AS DATE)
            END) AS INTEGER)
          ) - 8081 AS TINYINT) AS code_7,
          CASE
            WHEN NOT (
              CAST("fee" AS DOUBLE) IS NULL OR IS_NAN(CAST("fee" AS DOUBLE))
            )
            THEN CAST(LEAST(
              ROUND(
                CAST((
                  LEAST(GREATEST(CAST("fee" AS DOUBLE), 0.0e0), 100.0e0) - 0.0e0
                ) AS DOUBLE) / 1.0e0
              ),
              100.0e0
            ) AS BIGINT) + -50
          END AS value_0,
          RTRIM(CAST("person" AS VARCHAR)) AS person
        FROM clinic.visits
        WHERE
          (
            (
              "age" IS NULL OR "age" BETWEEN 0 AND 85
            )
            AND (
              "income" >= 0.0e0 AND "income" < 100.0e0
            )
            AND NOT "member" IS NULL
            AND "born" BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
            AND (
              AT_TIMEZONE("seen", 'UTC') IS NULL
              OR CAST(AT_TIMEZONE("seen", 'UTC') AS DATE) BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
            )
            AND CASE
              WHEN LENGTH("said") <= 10
              THEN CASE
                WHEN REGEXP_LIKE("said", '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                THEN TRY_CAST("said" AS DATE)
              END
              ELSE CAST(CASE
                WHEN REGEXP_LIKE(
                  "said",
                  '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                )
                THEN TRY(AT_TIMEZONE(FROM_ISO8601_TIMESTAMP(REPLACE("said", ' ', 'T')), 'UTC'))
              END AS DATE)
            END BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
          )
          AND NOT RTRIM(CAST("person" AS VARCHAR)) IS NULL
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
