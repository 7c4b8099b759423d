// What stands in a cell of a CSV, or behind the "#" of a line above it: a text ends neither.

export function quoted(value) {
  if (value == null) return "";
  const text = String(value);
  return /[",\r\n]|^#/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const remark = (line) => `# ${String(line).replaceAll(/\s+/g, " ")}`;
