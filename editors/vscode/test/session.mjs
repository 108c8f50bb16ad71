// The extension in code-server, a real editor, in headless Chromium: node test/session.mjs FOLDER
// FOLDER has node_modules with code-server and playwright-core. Pictures of each step and results.json stay in FOLDER.

import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const home = resolve(process.argv[2]);
const here = dirname(fileURLToPath(import.meta.url));
const { chromium } = createRequire(join(home, "x.js"))("playwright-core");
const python = join(here, "../../../.venv/bin");
const work = join(home, "work");
const PORT = 18_443;

/** A folder with a model in git, another version of it, and a text with a mistake. */
function makeFolder() {
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, ".vscode"), { recursive: true });
  writeFileSync(join(work, ".vscode/settings.json"), JSON.stringify({ "onnxjson.command": join(python, "onnxjson") }));
  const make = "from tests.serving.test_language_server import text_of; import onnxjson, pathlib, sys; " +
    "f = pathlib.Path(sys.argv[1]); t = text_of(f); (f / 'wrong.onnx.json').write_text(t.replace('Softmax', 'SoftMax')); " +
    "onnxjson.save(onnxjson.loads(t.replace('Relu', 'Elu')), f / 'other.onnx'); import zipfile; " +
    "z = zipfile.ZipFile(f / 'fake-1-py3-none-any.whl', 'w'); i = 'fake-1.dist-info/'; z.writestr('fake.py', 'def main(): pass'); " +
    "z.writestr(i + 'METADATA', 'Metadata-Version: 2.1\\nName: fake\\nVersion: 1\\n'); z.writestr(i + 'RECORD', ''); " +
    "z.writestr(i + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'); " +
    "z.writestr(i + 'entry_points.txt', '[console_scripts]\\nonnxjson = fake:main\\n'); z.close()";
  execFileSync(join(python, "python"), ["-c", make, work], { cwd: join(here, "../../..") });
  mkdirSync(join(work, "chosen/bin"), { recursive: true });
  for (const each of ["python", "onnxjson"]) symlinkSync(join(python, each), join(work, "chosen/bin", each));
  const git = (...words) => execFileSync("git", ["-c", "user.name=n", "-c", "user.email=e@e", ...words], { cwd: work });
  git("init", "-q");
  git("add", "m.onnx");
  git("commit", "-qm", "model");
}

makeFolder();
const data = join(home, "data");
const extensions = join(data, "extensions");
rmSync(data, { recursive: true, force: true });
for (const each of ["driver", "python"]) cpSync(join(here, each), join(extensions, each), { recursive: true });
const entry = join(home, "node_modules/code-server/out/node/entry.js");
const places = ["--user-data-dir", data, "--extensions-dir", extensions];
execFileSync("node", [entry, ...places, "--install-extension", join(here, "../onnxjson-1.0.0.vsix")], { stdio: "inherit" });
const server = spawn("node", [entry, ...places, "--auth", "none", "--bind-addr", `127.0.0.1:${PORT}`, "--disable-telemetry",
  "--disable-update-check", "--disable-workspace-trust", work], { stdio: ["ignore", "pipe", "inherit"] });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"] });
try {
  await new Promise((done) => server.stdout.on("data", (line) => String(line).includes("listening on") && done()));
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  await page.goto(`http://127.0.0.1:${PORT}/?folder=${work}`);
  const file = join(work, "results.json");
  let seen = 0;
  for (const end = Date.now() + 300_000; Date.now() < end; await page.waitForTimeout(300)) {
    const results = existsSync(file) ? JSON.parse(readFileSync(file, "utf-8") || "{}") : {};
    if (Object.keys(results).length > seen) {
      seen = Object.keys(results).length;
      await page.screenshot({ path: join(home, `step-${seen}.png`) });
    }
    if (results.done) break;
  }
  const results = existsSync(file) ? JSON.parse(readFileSync(file, "utf-8")) : {};
  for (const [name, result] of Object.entries(results)) console.log(`${name}: ${result}`);
  process.exitCode = results.done && Object.values(results).every((each) => each === "passed") ? 0 : 1;
} finally {
  await browser.close();
  server.kill();
}
