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
  CAST(COALESCE(SUM(value_0), 0) AS INT64) AS sum_0
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
          THEN TO_HEX(
            MD5(
              'key' || '|' || COALESCE(CAST(person AS STRING), '') || '|' || COALESCE(CAST(code_0 AS STRING), '') || '|' || COALESCE(CAST(code_1 AS STRING), '') || '|' || COALESCE(CAST(code_2 AS STRING), '') || '|' || COALESCE(CAST(code_3 AS STRING), '') || '|' || COALESCE(CAST(code_4 AS STRING), '') || '|' || COALESCE(CAST(code_5 AS STRING), '') || '|' || COALESCE(CAST(code_6 AS STRING), '') || '|' || COALESCE(CAST(code_7 AS STRING), '') || '|' || COALESCE(CAST(value_0 AS STRING), '') || '|' || COALESCE(CAST(occurrence AS STRING), '')
            )
          )
        END NULLS LAST
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
          ORDER BY code_0 NULLS LAST, code_1 NULLS LAST, code_2 NULLS LAST, code_3 NULLS LAST, code_4 NULLS LAST, code_5 NULLS LAST, code_6 NULLS LAST, code_7 NULLS LAST, value_0 NULLS LAST
        ) AS occurrence,
        COUNT(*) OVER (PARTITION BY person) AS own
      FROM (
        SELECT
          CAST(CASE WHEN `age` IS NULL THEN 86 ELSE CAST(`age` AS INT64) - 0 END AS INT64) AS code_0,
          CAST(CASE
            WHEN CASE
              WHEN REGEXP_CONTAINS(
                COLLATE(`visits`, ''),
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN SAFE_CAST(COLLATE(`visits`, '') AS FLOAT64)
            END BETWEEN 0 AND 9
            AND CASE
              WHEN REGEXP_CONTAINS(
                COLLATE(`visits`, ''),
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN SAFE_CAST(COLLATE(`visits`, '') AS FLOAT64)
            END = FLOOR(
              CASE
                WHEN REGEXP_CONTAINS(
                  COLLATE(`visits`, ''),
                  '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
                )
                THEN SAFE_CAST(COLLATE(`visits`, '') AS FLOAT64)
              END
            )
            THEN CAST(CASE
              WHEN REGEXP_CONTAINS(
                COLLATE(`visits`, ''),
                '^ *([+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?|[nN][aA][nN]|[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?) *$'
              )
              THEN SAFE_CAST(COLLATE(`visits`, '') AS FLOAT64)
            END AS INT64) - 0
            ELSE 10
          END AS INT64) AS code_1,
          CAST(CASE
            WHEN `income` < 0.1e0
            THEN 0
            ELSE CASE WHEN `income` < 10.0e0 THEN 1 ELSE 2 END
          END AS INT64) AS code_2,
          CAST(CASE
            WHEN COLLATE(`state`, '') IN ('MA', 'it\'s', 'ma')
            THEN CASE
              WHEN COLLATE(`state`, '') < 'it\'s'
              THEN 0
              ELSE CASE WHEN COLLATE(`state`, '') < 'ma' THEN 2 ELSE 1 END
            END
            ELSE 3
          END AS INT64) AS code_3,
          CAST(CASE WHEN `member` THEN 1 ELSE 0 END AS INT64) AS code_4,
          CAST((
            (
              CAST(EXTRACT(YEAR FROM `born`) AS INT64) * 12
            ) + CAST(EXTRACT(MONTH FROM `born`) AS INT64)
          ) - 24241 AS INT64) AS code_5,
          CAST(CASE
            WHEN `seen` IS NULL
            THEN 60
            ELSE DIV(DATE_DIFF(CAST(`seen` AS DATE), CAST('2020-01-13' AS DATE), DAY), 7)
          END AS INT64) AS code_6,
          CAST((
            (
              CAST(EXTRACT(YEAR FROM CASE
                WHEN LENGTH(COLLATE(`said`, '')) <= 10
                THEN CASE
                  WHEN REGEXP_CONTAINS(COLLATE(`said`, ''), '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                  THEN SAFE_CAST(COLLATE(`said`, '') AS DATE)
                END
                ELSE CAST(CASE
                  WHEN REGEXP_CONTAINS(
                    COLLATE(`said`, ''),
                    '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                  )
                  THEN SAFE_CAST(COLLATE(`said`, '') AS TIMESTAMP)
                END AS DATE)
              END) AS INT64) * 4
            ) + CAST(EXTRACT(QUARTER FROM CASE
              WHEN LENGTH(COLLATE(`said`, '')) <= 10
              THEN CASE
                WHEN REGEXP_CONTAINS(COLLATE(`said`, ''), '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                THEN SAFE_CAST(COLLATE(`said`, '') AS DATE)
              END
              ELSE CAST(CASE
                WHEN REGEXP_CONTAINS(
                  COLLATE(`said`, ''),
                  '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                )
                THEN SAFE_CAST(COLLATE(`said`, '') AS TIMESTAMP)
              END AS DATE)
            END) AS INT64)
          ) - 8081 AS INT64) AS code_7,
          CASE
            WHEN NOT (
              CAST(`fee` AS FLOAT64) IS NULL OR IS_NAN(CAST(`fee` AS FLOAT64))
            )
            THEN CAST(LEAST(
              ROUND((
                LEAST(GREATEST(CAST(`fee` AS FLOAT64), 0.0e0), 100.0e0) - 0.0e0
              ) / 1.0e0),
              100.0e0
            ) AS INT64) + -50
          END AS value_0,
          COLLATE(`person`, '') AS person
        FROM clinic.visits
        WHERE
          (
            (
              `age` IS NULL OR `age` BETWEEN 0 AND 85
            )
            AND (
              `income` >= 0.0e0 AND `income` < 100.0e0
            )
            AND NOT `member` IS NULL
            AND `born` BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
            AND (
              `seen` IS NULL
              OR CAST(`seen` AS DATE) BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
            )
            AND CASE
              WHEN LENGTH(COLLATE(`said`, '')) <= 10
              THEN CASE
                WHEN REGEXP_CONTAINS(COLLATE(`said`, ''), '^[0-9]{4}-[0-9]{2}-[0-9]{2}$')
                THEN SAFE_CAST(COLLATE(`said`, '') AS DATE)
              END
              ELSE CAST(CASE
                WHEN REGEXP_CONTAINS(
                  COLLATE(`said`, ''),
                  '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?$'
                )
                THEN SAFE_CAST(COLLATE(`said`, '') AS TIMESTAMP)
              END AS DATE)
            END BETWEEN CAST('2020-01-15' AS DATE) AND CAST('2021-03-02' AS DATE)
          )
          AND NOT COLLATE(`person`, '') IS NULL
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
