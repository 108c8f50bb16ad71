// Answers as the Python extension does when it is asked for the chosen environment: which is a folder, then a program.

const { join } = require("node:path");
const vscode = require("vscode");

exports.activate = () => ({
  environments: {
    getActiveEnvironmentPath: (folder) => ({ id: "chosen", path: join(folder.fsPath, "chosen") }),
    resolveEnvironment: async ({ path }) => ({ executable: { uri: vscode.Uri.file(join(path, "bin/python")) } }),
  },
});
