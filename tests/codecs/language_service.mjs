// What an editor shows with the schema, as JSON: run by language_service.py with the schema as argument.
import { readFileSync } from "fs";
import { createRequire } from "module";
const require = createRequire(process.cwd() + "/");
const { getLanguageService, TextDocument } = require("vscode-json-languageservice");

const text = readFileSync(process.argv[2], "utf8");
const service = getLanguageService({ schemaRequestService: async () => text });
service.configure({ schemas: [{ uri: "urn:s", fileMatch: ["*.onnx.json"], schema: JSON.parse(text) }], validate: true });

async function at(marked) {
  const offset = marked.indexOf("|");
  const document = TextDocument.create("file:///m.onnx.json", "json", 1, marked.replace("|", ""));
  const parsed = service.parseJSONDocument(document);
  const position = document.positionAt(offset);
  const completion = await service.doComplete(document, position, parsed);
  const hover = await service.doHover(document, position, parsed);
  const problems = await service.doValidation(document, parsed);
  return {
    words: completion.items.map((item) => item.label),
    hover: hover ? hover.contents.join("\n").replaceAll("\\", "") : "",
    problems: problems.map((problem) => problem.message),
  };
}

const node = (inside) => `{"format": "onnxjson/1", "graph": {"node": [${inside}]}}`;
const input = (type) => `{"format": "onnxjson/1", "graph": {"input": [{"name": "x", "type": "${type}"}]}}`;
const found = {
  attributes: await at(node('{"op_type": "Conv", "attribute": {"|"}}')),
  operators: await at(node('{"op_type": "Co|nv"}')),
  attribute: await at(node('{"op_type": "Conv", "attribute": {"pa|ds": [0, 0]}}')),
  choices: await at(node('{"op_type": "Conv", "attribute": {"auto_pad": "|"}}')),
  type: await at(input("flot32[1|]")),
  number: await at(node('{"op_type": "Conv", "attribute": {"group": "one|"}}')),
};
console.log(JSON.stringify(found));
