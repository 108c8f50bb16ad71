// Runs in a real editor beside the extension: does what a user does, and writes what happened to a file.

const { existsSync, readFileSync, writeFileSync } = require("node:fs");
const { join } = require("node:path");
const vscode = require("vscode");

const run = (...given) => vscode.commands.executeCommand(...given);

/** Waits until `found` returns something. */
async function wait(what, found, seconds = 60) {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const result = await found();
    if (result) return result;
  }
  throw new Error(`waited in vain for ${what}`);
}

function offsetOf(document, part, more = 0) {
  const offset = document.getText().indexOf(part);
  if (offset < 0) throw new Error(`the text has no ${part}`);
  return document.positionAt(offset + more);
}

async function replace(document, part, by) {
  const change = new vscode.WorkspaceEdit();
  change.replace(document.uri, new vscode.Range(offsetOf(document, part), offsetOf(document, part, part.length)), by);
  if (!(await vscode.workspace.applyEdit(change))) throw new Error("the edit was not applied");
}

const active = () => vscode.window.activeTextEditor?.document;

const steps = {
  async "a binary opens as text"(folder) {
    await run("onnxjson.text", vscode.Uri.file(join(folder, "m.onnx")));
    const document = await wait("the text", () => active()?.uri.scheme === "onnxjson" && active());
    if (document.languageId !== "onnxjson") throw new Error(document.languageId);
    const found = await wait("its symbols", () => run("vscode.executeDocumentSymbolProvider", document.uri));
    if (!found.some((line) => line.children.some((each) => each.name === "first"))) throw new Error("the outline is no tree");
  },
  async "hover, completion, definition"() {
    const { uri } = active();
    const hovers = await run("vscode.executeHoverProvider", uri, offsetOf(active(), '"Softmax"', 2));
    if (!hovers[0].contents[0].value.includes("axis")) throw new Error(JSON.stringify(hovers));
    const offers = await run("vscode.executeCompletionItemProvider", uri, offsetOf(active(), '"Softmax"', 1));
    const item = offers.items.find((each) => each.label === "LogSoftmax");
    if (!item || item.kind !== vscode.CompletionItemKind.Function) throw new Error("no LogSoftmax");
    const resolved = await run("vscode.executeCompletionItemProvider", uri, offsetOf(active(), '"Softmax"', 1), undefined, 999);
    const { documentation } = resolved.items.find((each) => each.label === "LogSoftmax");
    if (!String(documentation.value ?? documentation).includes("axis")) throw new Error("no documentation");
    const places = await run("vscode.executeDefinitionProvider", uri, offsetOf(active(), '"input": ["h"]', 11));
    if (places.length !== 1) throw new Error(JSON.stringify(places));
  },
  async "findings appear and disappear, a correction is offered"() {
    const document = active();
    await replace(document, '"Softmax"', '"SoftMax"');
    const found = await wait("a finding", () => vscode.languages.getDiagnostics(document.uri)[0]);
    const actions = await run("vscode.executeCodeActionProvider", document.uri, found.range);
    const action = actions.find((each) => each.title === "Replace with Softmax");
    await vscode.workspace.applyEdit(action.edit);
    await wait("no finding", () => !vscode.languages.getDiagnostics(document.uri).length);
  },
  async "an edit of the node at the cursor is an action"() {
    const at = offsetOf(active(), '"Softmax"', 2);
    const place = new vscode.Range(at, at);
    const actions = await run("vscode.executeCodeActionProvider", active().uri, place, undefined, 9);
    const { edit } = actions.find((each) => each.title.startsWith("Delete nodes"));
    await vscode.workspace.applyEdit(edit);
    if (active().getText().includes("Softmax")) throw new Error("the node is there");
    await run("undo");
    if (!active().getText().includes("Softmax")) throw new Error("undo did nothing");
  },
  async "a text with errors is not saved"(folder) {
    const document = active();
    const before = readFileSync(join(folder, "m.onnx"));
    await replace(document, '"Softmax"', '"SoftMax"');
    const saved = await document.save().then((done) => done, () => false);
    if (saved || !readFileSync(join(folder, "m.onnx")).equals(before)) throw new Error("saved");
    await replace(document, '"SoftMax"', '"Softmax"');
  },
  async "an edit, a rename, and undo are saved to the binary"(folder) {
    const document = active();
    const change = await run("vscode.executeDocumentRenameProvider", document.uri,
                             offsetOf(document, '"input": ["h"]', 11), "hidden");
    await vscode.workspace.applyEdit(change);
    await replace(document, '"axis": -1', '"axis": 1');
    if (!(await document.save())) throw new Error("not saved");
    await run("undo");
    if (!document.getText().includes('"axis": -1')) throw new Error("undo did nothing");
    await run("redo");
    if (!readFileSync(join(folder, "m.onnx")).includes("hidden")) throw new Error("the binary has no hidden");
  },
  async "changes since HEAD are marked"() {
    const found = await vscode.extensions.getExtension("onnxjson.onnxjson").exports.marks();
    if (!found.some((each) => each.text === "attribute axis was -1" && active().lineAt(each.line).text.includes("Softmax")))
      throw new Error(JSON.stringify(found));
  },
  async "an environment is created where that is possible"(folder) {
    const { environment } = vscode.extensions.getExtension("onnxjson.onnxjson").exports;
    const settings = vscode.workspace.getConfiguration("onnxjson");
    await settings.update("package", join(folder, "absent.whl"), vscode.ConfigurationTarget.Global);
    if (await run("onnxjson.environment", true)) throw new Error("nothing was installed");
    await settings.update("package", join(folder, "fake-1-py3-none-any.whl"), vscode.ConfigurationTarget.Global);
    if (!(await run("onnxjson.environment", true))) throw new Error("refused");
    if (!existsSync(join(environment, "bin/onnxjson"))) throw new Error("there is no program");
  },
  async "the program next to the interpreter that the Python extension chose is found"(folder) {
    const settings = vscode.workspace.getConfiguration("onnxjson");
    const given = settings.get("command");
    await settings.update("command", undefined, vscode.ConfigurationTarget.Workspace);
    const found = vscode.extensions.getExtension("onnxjson.onnxjson").exports.program();
    await settings.update("command", given, vscode.ConfigurationTarget.Workspace);
    if (found !== join(folder, "chosen/bin/onnxjson")) throw new Error(found);
  },
  async "a file that changed is read again"(folder) {
    const document = active();
    writeFileSync(join(folder, "m.onnx"), readFileSync(join(folder, "other.onnx")));
    await wait("the new text", () => document.getText().includes('"Elu"'), 20);
  },
  async "the comparison with HEAD has two texts"(folder) {
    await run("onnxjson.compare", vscode.Uri.file(join(folder, "m.onnx")), "HEAD");
    const input = await wait("the comparison", () => vscode.window.tabGroups.activeTabGroup.activeTab?.input?.original &&
      vscode.window.tabGroups.activeTabGroup.activeTab.input);
    const [old, now] = await Promise.all([input.original, input.modified].map((uri) => vscode.workspace.openTextDocument(uri)));
    if (!old.getText().includes('"Softmax"') || !now.getText().includes('"Elu"')) throw new Error("other texts");
    const content = await vscode.workspace.fs.stat(input.original);
    if (content.permissions !== vscode.FilePermission.Readonly) throw new Error("HEAD can be written");
  },
  async "a pass writes another file, which is compared"(folder) {
    await run("onnxjson.optimize", vscode.Uri.file(join(folder, "m.onnx")), "onnxoptimizer");
    if (!existsSync(join(folder, "m.onnxoptimizer.onnx"))) throw new Error("no result");
  },
  async "two models are verified"(folder) {
    await run("onnxjson.verify", vscode.Uri.file(join(folder, "m.onnx")), vscode.Uri.file(join(folder, "other.onnx")));
  },
  async "the page is shown beside"(folder) {
    await run("onnxjson.preview", vscode.Uri.file(join(folder, "m.onnx")));
    await wait("the page", () => vscode.window.tabGroups.all.some((group) =>
      group.tabs.some((tab) => tab.input?.viewType?.includes("onnxjson"))));
  },
  async "a text file has findings"(folder) {
    const document = await vscode.workspace.openTextDocument(join(folder, "wrong.onnx.json"));
    await vscode.window.showTextDocument(document, vscode.ViewColumn.One);
    await wait("a finding", () => vscode.languages.getDiagnostics(document.uri)[0]?.code === "unknown-operator");
  },
};

exports.activate = async () => {
  const folder = vscode.workspace.workspaceFolders[0].uri.fsPath;
  const results = {};
  const only = process.env.ONNXJSON_STEPS;
  for (const [name, step] of Object.entries(steps)) {
    if (only && !name.includes(only)) continue;
    try {
      await step(folder);
      results[name] = "passed";
    } catch (error) {
      results[name] = String(error.stack ?? error);
    }
    writeFileSync(join(folder, "results.json"), JSON.stringify(results, null, 1));
    await wait("a picture", () => new Promise((done) => setTimeout(() => done(true), 1500)));
  }
  writeFileSync(join(folder, "results.json"), JSON.stringify({ ...results, done: "passed" }, null, 1));
};
