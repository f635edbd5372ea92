// A question as a program that asks it. None contains a token: it comes from the environment.

const address = () => new URL(".", location.href).href.replace(/\/$/, "");
const python = (text) => `"""${text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"')}"""`;
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const r = (text) => JSON.stringify(text);

/** [[language, program], ...] for a question; its key makes asking again free. */
export function snippets({ sql, pay, key }, dataset) {
  const url = address();
  const body = JSON.stringify({ sql, pay, key });
  return [
    [
      "Python",
      `import sharewell\n\n# Reads your token from the environment: SHAREWELL_TOKEN.\nwith sharewell.connect(${JSON.stringify(url)}) as session:\n    result = session.ask(${python(sql)}, pay=${pay ? "True" : "False"}, key=${JSON.stringify(key)})\n    print(result)\n`,
    ],
    [
      "R",
      `library(httr2)\n\n# Reads your token from the environment: SHAREWELL_TOKEN.\nresult <- request(${r(`${url}/v1/datasets/${dataset}/ask`)}) |>\n  req_auth_bearer_token(Sys.getenv("SHAREWELL_TOKEN")) |>\n  req_body_json(list(sql = ${r(sql)}, pay = ${pay ? "TRUE" : "FALSE"}, key = ${r(key)})) |>\n  req_perform() |>\n  resp_body_json()\n`,
    ],
    [
      "curl",
      `curl -s ${quoted(`${url}/v1/datasets/${dataset}/ask`)} \\\n  -H "Authorization: Bearer $SHAREWELL_TOKEN" -H 'Content-Type: application/json' \\\n  -d ${quoted(body)}\n`,
    ],
  ];
}
