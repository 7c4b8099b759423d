"""A model of VS Code: its widget manager in a page, and a kernel that is reached by messages alone."""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MANAGER: Final = "@vscode/jupyter-ipywidgets8@1.0.9"
"""The package that VS Code's Jupyter extension loads into its notebooks, from npm."""

PAGE: Final = """<!doctype html><meta charset="utf-8"><div id="cell"></div><script>
const held = {}, once = (make) => { let made; return () => (made ??= make()); };
let unnamed;
window.define = (...given) => {
  const make = given.pop(), name = typeof given[0] === "string" ? given.shift() : null, needs = given[0] ?? [];
  const built = once(() => make(...needs.map((each) => held[each]())));
  if (name) held[name] = built; else unnamed = built;
};
window.requirejs = (names, done) => done(...names.map((name) => held[name]()));
const loading = {}, scripts = {
  widgetsRegisteredInRequireJs: new Set(), successHandler() {},
  errorHandler: (...messages) => console.error(messages.join(" ")),
  loadWidgetScript: (name) => loading[name] ??= new Promise((done, failed) => {
    const tag = document.createElement("script");
    tag.onload = () => { held[name] = unnamed; done(); };
    tag.onerror = failed;
    tag.src = `nbextensions/${name}/index.js`;
    document.head.append(tag);
  }),
};
const comms = {}, targets = {}, waiting = {}, signal = { connect() {}, disconnect() {} };
const letters = (buffer) => Array.from(new Uint8Array(buffer.buffer ?? buffer), (one) => String.fromCharCode(one));
const text = (buffer) => btoa(letters(buffer).join(""));
const bytes = (code) => Uint8Array.from(atob(code), (letter) => letter.charCodeAt(0)).buffer;
class Comm {
  constructor(targetName, commId) { Object.assign(this, { targetName, commId }); comms[commId] = this; }
  post(kind, data, metadata, buffers) {
    const id = crypto.randomUUID(), content = { comm_id: this.commId, target_name: this.targetName, data };
    const message = { id, kind, content, metadata: metadata ?? {}, buffers: (buffers ?? []).map(text) };
    window.toKernel(JSON.stringify(message));
    return (waiting[id] = { msg: { header: { msg_id: id } }, done: Promise.resolve() });
  }
  open(...message) { return this.post("comm_open", ...message); }
  send(...message) { return this.post("comm_msg", ...message); }
  close(...message) { return this.post("comm_close", ...message); }
}
const kernel = {
  id: "kernel", clientId: "page", username: "", status: "idle", connectionStatus: "connected", handleComms: true,
  statusChanged: signal, connectionStatusChanged: signal, iopubMessage: signal, disposed: signal, anyMessage: signal,
  registerCommTarget: (name, act) => { targets[name] = act; }, removeCommTarget: (name) => delete targets[name],
  createComm: (target, id) => new Comm(target, id ?? crypto.randomUUID()),
  requestCommInfo: async () => ({ content: { status: "ok", comms: {} } }),
};
let last = Promise.resolve();
window.fromKernel = (message) => (last = last.then(() => taken(message)).catch((error) => console.error(error)));
async function taken(message) {
  message.buffers = message.buffers.map(bytes);
  const { msg_type: kind } = message.header, { content } = message, parent = message.parent_header?.msg_id;
  const { target_name: target, comm_id: id } = content;
  if (kind === "comm_open") await targets[target]?.(new Comm(target, id), message);
  else if (kind === "comm_msg") await comms[id]?.onMsg?.(message);
  else await waiting[parent]?.onIOPub?.(message);
}
window.ready = import("./manager.mjs").then(({ activate }) => {
  activate();
  vscIPyWidgets8.load();
  window.manager = new vscIPyWidgets.WidgetManager(kernel, document.body, scripts, () => {});
});
window.show = async (id) => {
  const cell = document.getElementById("cell");
  const view = await manager.create_view(await manager.get_model(id), { el: cell });
  await manager.display_view({}, view, { node: cell });
};
</script>"""


def fetch(folder: Path) -> str | None:
    """Put the manager and its page into a folder; return why that failed, or nothing."""
    import anywidget

    try:
        command = ["npm", "pack", "--silent", MANAGER]
        packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        return f"npm has no {MANAGER} ({type(error).__name__})"
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        manager = archive.extractfile("package/dist/ipywidgets.js")
        assert manager is not None
        (folder / "manager.mjs").write_bytes(manager.read())
    extension = folder / "nbextensions" / "anywidget"
    extension.mkdir(parents=True)
    (extension / "index.js").write_bytes((Path(anywidget.__file__).parent / "nbextension" / "index.js").read_bytes())
    (folder / "index.html").write_text(PAGE)
    return None


class Bridge:
    """Carries messages between a kernel and a page, as the extension does between its host and a notebook."""

    def __init__(self, page: Any, client: Any) -> None:
        self.page, self.client = page, client
        self.results: list[dict[str, Any]] = []
        page.expose_function("toKernel", self._send)

    def _send(self, text: str) -> None:
        sent = json.loads(text)
        message = self.client.session.msg(sent["kind"], sent["content"], metadata=sent["metadata"])
        message["header"]["msg_id"] = message["msg_id"] = sent["id"]
        buffers = [base64.b64decode(each) for each in sent["buffers"]]
        self.client.session.send(self.client.shell_channel.socket, message, buffers=buffers)

    def carry(self, done: Callable[[], object], seconds: float = 90.0) -> None:
        """Carry messages until something is done."""
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until, [message["msg_type"] for message in self.results]
            self.page.wait_for_timeout(10)
            try:
                message = self.client.get_iopub_msg(timeout=0.02)
            except queue.Empty:
                continue
            if message["msg_type"] in ("execute_result", "error"):
                self.results.append(message)
            buffers = [base64.b64encode(bytes(each)).decode() for each in message.get("buffers", ())]
            plain = json.loads(json.dumps({**message, "buffers": buffers}, default=str))
            self.page.evaluate("(message) => { fromKernel(message) }", plain)
