export function readConfig() {
  throw new Error("a config.json is read by fk.read_hf_config; the page does not read it yet");
}
