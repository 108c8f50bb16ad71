// Starts the language server, and offers binary models as texts that can be edited, compared and shown as pages.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

const SCHEME = "onnxjson";
const run = promisify(execFile);

let client: LanguageClient | undefined;

/** The program: that of the settings, else the one next to the Python interpreter, else the one in PATH. */
export function program(): string {
  const given = vscode.workspace.getConfiguration("onnxjson").get<string>("command");
  if (given) return given;
  const python = vscode.workspace.getConfiguration("python").get<string>("defaultInterpreterPath");
  const folders = vscode.workspace.workspaceFolders?.map((each) => each.uri.fsPath) ?? [];
  const places = [...(python ? [dirname(python)] : []), ...folders.map((each) => join(each, ".venv", "bin"))];
  return places.map((each) => join(each, "onnxjson")).find(existsSync) ?? "onnxjson";
}

async function ask(command: string, ...given: string[]): Promise<string> {
  if (!client) throw new Error("the language server is not running");
  await client.start();
  return client.sendRequest("workspace/executeCommand", { command, arguments: given });
}

/** Models as texts: `onnxjson:/folder/m.onnx.json` is the text of `/folder/m.onnx`; with a query, at that revision. */
class Texts implements vscode.FileSystemProvider {
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const found = await vscode.workspace.fs.stat(vscode.Uri.file(model(uri)));
    return { ...found, permissions: uri.query ? vscode.FilePermission.Readonly : undefined };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    if (!uri.query) return Buffer.from(await ask("onnxjson.open", model(uri)));
    return revision(model(uri), uri.query);
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    await ask("onnxjson.save", model(uri), Buffer.from(content).toString());
    this.changes.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }
  createDirectory(): void {
    throw vscode.FileSystemError.NoPermissions();
  }
  delete(): void {
    throw vscode.FileSystemError.NoPermissions();
  }
  rename(): void {
    throw vscode.FileSystemError.NoPermissions();
  }
}

/** The text of a model as it was at a revision of git. */
async function revision(file: string, name: string): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), "onnxjson-"));
  try {
    const most = { cwd: dirname(file), maxBuffer: 1 << 30, encoding: "buffer" as const };
    const copy = join(folder, basename(file));
    writeFileSync(copy, (await run("git", ["show", `${name}:./${basename(file)}`], most)).stdout);
    return (await run(program(), ["convert", copy, "--to", "json", "--weights", "digest", "-o", "-"], most)).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function model(uri: vscode.Uri): string {
  return uri.fsPath.replace(/\.text\.onnx\.json$/, "");
}

function textOf(file: vscode.Uri, revision = ""): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: `${file.path}.text.onnx.json`, query: revision });
}

/** The page of a model, without scripts from elsewhere and without access to files. */
async function preview(file: vscode.Uri): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "onnxjson-"));
  try {
    const page = join(folder, "page.html");
    await run(program(), ["show", file.fsPath, "-o", page]);
    const panel = vscode.window.createWebviewPanel("onnxjson", basename(file.path), vscode.ViewColumn.Beside, {
      enableScripts: true,
      localResourceRoots: [],
    });
    panel.webview.html = readFileSync(page, "utf-8");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function activate(context: vscode.ExtensionContext): void {
  const languages = ["file", SCHEME].map((scheme) => ({ scheme, language: "onnxjson" }));
  client = new LanguageClient("onnxjson", { command: program(), args: ["lsp"] }, { documentSelector: languages });
  const chosen = (file?: vscode.Uri): vscode.Uri => {
    const found = file ?? vscode.window.activeTextEditor?.document.uri;
    if (!found) throw new Error("choose a model first");
    return found;
  };
  context.subscriptions.push(
    client,
    vscode.workspace.registerFileSystemProvider(SCHEME, new Texts(), { isCaseSensitive: true }),
    vscode.commands.registerCommand("onnxjson.text", (file?: vscode.Uri) =>
      vscode.commands.executeCommand("vscode.open", textOf(chosen(file))),
    ),
    vscode.commands.registerCommand("onnxjson.compare", (file?: vscode.Uri) => {
      const found = chosen(file);
      const title = `${basename(found.path)} (HEAD and now)`;
      return vscode.commands.executeCommand("vscode.diff", textOf(found, "HEAD"), textOf(found), title);
    }),
    vscode.commands.registerCommand("onnxjson.preview", (file?: vscode.Uri) => preview(chosen(file))),
  );
  void client.start();
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}
