// Starts the language server, and offers binary models as texts that can be edited, compared and shown as pages.

import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

const SCHEME = "onnxjson";
const run = promisify(execFile);

let client: LanguageClient | undefined;
let starting: Promise<boolean>;
let output: vscode.OutputChannel;
/** The environment that this extension creates. */
let environment: string;

const [BIN, EXE] = process.platform === "win32" ? ["Scripts", ".exe"] : ["bin", ""];

/** The chosen Python interpreter. */
let interpreter: string | undefined;

/** Asks the Python extension, if there is one, for the chosen interpreter; otherwise it is that of the settings. */
async function findInterpreter(): Promise<void> {
  interpreter = vscode.workspace.getConfiguration("python").get<string>("defaultInterpreterPath");
  const asked = async () => {
    const { environments } = await vscode.extensions.getExtension("ms-python.python")?.activate();
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const found = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
    interpreter = found?.executable.uri?.fsPath ?? interpreter;
  };
  const patience = new Promise((done) => setTimeout(done, 10_000));
  await Promise.race([asked().catch(() => undefined), patience]);
}

/** The program in the settings, next to the chosen Python interpreter, in the workspace or created environment, or in PATH. */
function program(): string {
  const given = vscode.workspace.getConfiguration("onnxjson").get<string>("command");
  if (given) return given;
  const folders = vscode.workspace.workspaceFolders?.map((each) => join(each.uri.fsPath, ".venv")) ?? [];
  const places = [...(interpreter ? [dirname(interpreter)] : []), ...[...folders, environment].map((each) => join(each, BIN))];
  return places.map((each) => join(each, `onnxjson${EXE}`)).find(existsSync) ?? "onnxjson";
}

/** Creates an environment with the program, if the user agrees; returns whether it was created. */
async function create(agreed = false): Promise<boolean> {
  const wanted = vscode.workspace.getConfiguration("onnxjson").get<string>("package") || "onnxjson[lsp]";
  if (vscode.workspace.getConfiguration("onnxjson").get<string>("command") && !agreed) {
    void vscode.window.showErrorMessage(`${program()}, the program of the setting onnxjson.command, does not start`);
    return false;
  }
  const question = `${program()} does not run. Create a Python environment in ${environment}, and install ${wanted} there from the package index?`;
  if (!agreed && (await vscode.window.showWarningMessage(question, "Create")) !== "Create") return false;
  const python = join(environment, BIN, `python${EXE}`);
  const install = async () => {
    mkdirSync(dirname(environment), { recursive: true });
    // With -I, modules of the current folder, which may be a repository of strangers, are not imported.
    await run(interpreter || `python${EXE ? "" : "3"}`, ["-I", "-m", "venv", environment]);
    await run(python, ["-I", "-m", "pip", "install", "--disable-pip-version-check", wanted]);
  };
  const title = `Installing ${wanted}`;
  try {
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, install);
    return true;
  } catch (error) {
    const { message, stderr } = error as { message: string; stderr?: string };
    output.appendLine(stderr || message);
    const reason = (stderr || message).trim().split("\n").filter((line) => !line.startsWith("[notice]")).pop();
    void vscode.window.showErrorMessage(`No environment was created: ${reason}`);
    return false;
  }
}

/** Starts the language server; if there is none, offers to create an environment. */
async function start(agreed = false): Promise<boolean> {
  await findInterpreter();
  const runs = !agreed && (await run(program(), ["--version"]).then(() => true, () => false));
  if (!runs && !(await create(agreed))) return false;
  const languages = ["file", SCHEME].map((scheme) => ({ scheme, language: "onnxjson" }));
  await client?.stop().catch(() => undefined);
  client = new LanguageClient(
    "onnxjson",
    { command: program(), args: ["lsp"] },
    {
      documentSelector: languages,
      middleware: {
        // Binary models are opened as texts.
        async provideWorkspaceSymbols(query, token, next) {
          const found = (await next(query, token)) ?? [];
          for (const { location } of found) location.uri = shown(location.uri);
          return found;
        },
      },
    },
  );
  // A program that runs but does not serve lacks the extra lsp.
  return client.start().then(() => true, async () => runs && (await create()) && start());
}

type Change = { line: number; kind: keyof typeof CHANGES; text: string };

const CHANGES = { added: "added", changed: "modified", removed: "deleted" };

/** Marks lines that differ from the model in HEAD, with their previous content. */
class Marks {
  private readonly types = new Map(
    Object.entries(CHANGES).map(([kind, name]) => {
      const color = new vscode.ThemeColor(`editorGutter.${name}Background`);
      const after = { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 2em" };
      const border = { borderStyle: "solid", borderWidth: "0 0 0 3px", borderColor: color };
      return [kind, vscode.window.createTextEditorDecorationType({ ...border, overviewRulerColor: color, after })];
    }),
  );

  async show(editor?: vscode.TextEditor): Promise<Change[]> {
    if (editor?.document.languageId !== "onnxjson" || editor.document.uri.query) return [];
    const found: Change[] = await ask("onnxjson.changes", editor.document.uri.toString()).catch(() => []);
    for (const [kind, type] of this.types) {
      const lines = found.filter((each) => each.kind === kind && each.line < editor.document.lineCount);
      const options = lines.map(({ line, text }) => ({
        range: editor.document.lineAt(line).range,
        renderOptions: { after: { contentText: text } },
      }));
      editor.setDecorations(type, options);
    }
    return found;
  }
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
async function ask(command: string, ...given: string[]): Promise<any> {
  if (!(await starting) || !client) throw new Error("the language server is not running");
  return client.sendRequest("workspace/executeCommand", { command, arguments: given });
}

/** Models as texts: `onnxjson:/folder/m.onnx.json` is the text of `/folder/m.onnx`; with a query, at that revision. */
class Texts implements vscode.FileSystemProvider {
  private readonly changes = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changes.event;

  watch(uri: vscode.Uri): vscode.Disposable {
    const file = vscode.Uri.file(model(uri));
    const pattern = new vscode.RelativePattern(vscode.Uri.joinPath(file, ".."), basename(file.path));
    const watcher = vscode.workspace.createFileSystemWatcher(pattern, true);
    const fire = (type: vscode.FileChangeType) => () => this.changes.fire([{ type, uri }]);
    watcher.onDidChange(fire(vscode.FileChangeType.Changed));
    watcher.onDidDelete(fire(vscode.FileChangeType.Deleted));
    return watcher;
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
    writeFileSync(copy, (await run("git", ["show", "--end-of-options", `${name}:./${basename(file)}`], most)).stdout);
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

/** Two revisions of a model, or one (HEAD, unless another is given) and the file, in the diff editor. */
async function compare(file: vscode.Uri, given?: string): Promise<void> {
  const prompt = "Revision of git, or two as OLD..NEW";
  const revisions = given ?? (await vscode.window.showInputBox({ prompt, value: "HEAD" }));
  if (!revisions) return;
  const [old, now = ""] = revisions.split("..");
  const title = `${basename(file.path)} (${old} and ${now || "now"})`;
  await vscode.commands.executeCommand("vscode.diff", textOf(file, old), textOf(file, now), title);
}

/** Runs a pass; its result is another file, whose outputs were compared with those of the model. */
async function optimize(file: vscode.Uri, given?: string): Promise<void> {
  const listed = async () =>
    JSON.parse((await run(program(), ["passes", "--json"])).stdout).map((each: { name: string; summary: string }) => ({
      label: each.name,
      description: each.summary,
    }));
  const pass = given ?? (await vscode.window.showQuickPick<vscode.QuickPickItem>(listed()))?.label;
  if (!pass) return;
  const result = file.with({ path: file.path.replace(/(\.onnx(\.json)?)$/, `.${pass}$1`) });
  await report("optimize", file.fsPath, "-p", pass, "--verify", "-o", result.fsPath);
  if (existsSync(result.fsPath)) await vscode.commands.executeCommand("vscode.diff", shown(file), shown(result), pass);
}

async function verify(file: vscode.Uri, given?: vscode.Uri): Promise<void> {
  const other = given ?? (await vscode.window.showOpenDialog({ openLabel: "Verify with", defaultUri: file }))?.[0];
  if (other) await report("verify", file.fsPath, other.fsPath);
}

/** Runs a command of the program, and shows what it prints. */
async function report(...words: string[]): Promise<void> {
  const done = await run(program(), words).catch((error: { stdout: string; stderr: string }) => error);
  output.appendLine(`onnxjson ${words.join(" ")}\n${done.stderr}${done.stdout}`);
  output.show(true);
}

function shown(file: vscode.Uri): vscode.Uri {
  return file.path.endsWith(".onnx") ? textOf(file) : file;
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

export function activate(context: vscode.ExtensionContext): {
  environment: string;
  marks: () => Promise<Change[]>;
  program: () => string;
} {
  environment = join(context.globalStorageUri.fsPath, "env");
  const marks = new Marks();
  const chosen = (file?: vscode.Uri): vscode.Uri => {
    const found = file ?? vscode.window.activeTextEditor?.document.uri;
    if (!found) throw new Error("choose a model first");
    return found.scheme === SCHEME ? vscode.Uri.file(model(found)) : found;
  };
  output = vscode.window.createOutputChannel("ONNX");
  context.subscriptions.push(
    output,
    vscode.window.onDidChangeActiveTextEditor((editor) => void marks.show(editor)),
    vscode.workspace.onDidSaveTextDocument(() => void marks.show(vscode.window.activeTextEditor)),
    vscode.commands.registerCommand("onnxjson.environment", (agreed?: boolean) => {
      starting = start(agreed === true);
      return starting;
    }),
    vscode.workspace.registerFileSystemProvider(SCHEME, new Texts(), { isCaseSensitive: true }),
    vscode.commands.registerCommand("onnxjson.text", (file?: vscode.Uri) =>
      vscode.commands.executeCommand("vscode.open", textOf(chosen(file))),
    ),
    vscode.commands.registerCommand("onnxjson.compare", (file?: vscode.Uri, revisions?: string) =>
      compare(chosen(file), revisions),
    ),
    vscode.commands.registerCommand("onnxjson.optimize", (file?: vscode.Uri, pass?: string) =>
      optimize(chosen(file), pass),
    ),
    vscode.commands.registerCommand("onnxjson.verify", (file?: vscode.Uri, other?: vscode.Uri) =>
      verify(chosen(file), other),
    ),
    vscode.commands.registerCommand("onnxjson.preview", (file?: vscode.Uri) => preview(chosen(file))),
  );
  starting = start();
  void starting.then(() => marks.show(vscode.window.activeTextEditor));
  return { environment, marks: () => marks.show(vscode.window.activeTextEditor), program };
}

export function deactivate(): Promise<void> | undefined {
  return client?.stop();
}
