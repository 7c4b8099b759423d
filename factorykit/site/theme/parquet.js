/* Columns as a Parquet file: one row group, one page a column, values plain, null where a value is missing. The format
   is that of github.com/apache/parquet-format; its metadata are structs of Thrift's compact protocol. */
(function () {
  "use strict";
  var I32 = 5, I64 = 6, TEXT = 8, LIST = 9, STRUCT = 12; // types of Thrift
  var DOUBLE = 5, BYTES = 6, UTF8 = 0, OPTIONAL = 1, PLAIN = 0, RLE = 3; // of Parquet
  var encoder = new TextEncoder();
  function varint(value) {
    var bytes = [];
    for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
    return bytes.concat(value);
  }
  function binary(text) {
    var bytes = encoder.encode(text);
    return varint(bytes.length).concat(Array.from(bytes));
  }
  var WRITE = {};
  WRITE[I32] = WRITE[I64] = function (value) { return varint(2 * value); }; // zigzag of what is never negative
  WRITE[TEXT] = binary;
  WRITE[STRUCT] = struct;
  WRITE[LIST] = function (many) {
    var head = many.items.length < 15 ? [many.items.length * 16 + many.of] : [240 + many.of].concat(varint(many.items.length));
    return many.items.reduce(function (all, item) { return all.concat(WRITE[many.of](item)); }, head);
  };
  /* Fields are [number, type, value], in the order of their numbers. */
  function struct(fields) {
    var before = 0, bytes = [];
    fields.forEach(function (field) {
      bytes.push((field[0] - before) * 16 + field[1]);
      bytes = bytes.concat(WRITE[field[1]](field[2]));
      before = field[0];
    });
    return bytes.concat(0);
  }
  function list(of, items) { return { of: of, items: items }; }
  function int32(value) { return new Uint8Array(new Uint32Array([value]).buffer); } // this and doubles: little-endian machines
  function joined(parts) {
    var whole = new Uint8Array(parts.reduce(function (all, part) { return all + part.length; }, 0)), at = 0;
    parts.forEach(function (part) {
      whole.set(part, at);
      at += part.length;
    });
    return whole;
  }
  /* A page: which values are there, one bit each, and the values. */
  function page(column) {
    var there = new Uint8Array(Math.ceil(column.values.length / 8)), known = [];
    column.values.forEach(function (value, n) {
      if (value === null || value === undefined) return;
      there[n >> 3] |= 1 << (n & 7);
      known.push(value);
    });
    var run = varint(2 * there.length + 1);
    var parts = [int32(run.length + there.length), run, there];
    if (column.number) return joined(parts.concat(new Uint8Array(Float64Array.from(known).buffer)));
    known.forEach(function (value) {
      var bytes = encoder.encode(value);
      parts.push(int32(bytes.length), bytes);
    });
    return joined(parts);
  }

  /* Columns are { name, number, values }; about is text by key. */
  window.fkParquet = function (columns, about) {
    var parts = [encoder.encode("PAR1")], rows = columns[0].values.length, at = 4;
    var chunks = columns.map(function (column) {
      var data = page(column), start = at;
      var header = struct([[1, I32, 0], [2, I32, data.length], [3, I32, data.length], [5, STRUCT, [[1, I32, rows], [2, I32, PLAIN], [3, I32, RLE], [4, I32, RLE]]]]);
      var length = header.length + data.length;
      parts.push(Uint8Array.from(header), data);
      at += length;
      return [[2, I64, start], [3, STRUCT, [
        [1, I32, column.number ? DOUBLE : BYTES], [2, LIST, list(I32, [PLAIN, RLE])], [3, LIST, list(TEXT, [column.name])], [4, I32, 0],
        [5, I64, rows], [6, I64, length], [7, I64, length], [9, I64, start]]]];
    });
    var schema = columns.map(function (column) {
      return [[1, I32, column.number ? DOUBLE : BYTES], [3, I32, OPTIONAL], [4, TEXT, column.name]].concat(column.number ? [] : [[6, I32, UTF8]]);
    });
    var foot = Uint8Array.from(struct([
      [1, I32, 1], [2, LIST, list(STRUCT, [[[4, TEXT, "schema"], [5, I32, columns.length]]].concat(schema))], [3, I64, rows],
      [4, LIST, list(STRUCT, [[[1, LIST, list(STRUCT, chunks)], [2, I64, at - 4], [3, I64, rows]]])],
      [5, LIST, list(STRUCT, Object.keys(about).map(function (key) { return [[1, TEXT, key], [2, TEXT, about[key]]]; }))],
      [6, TEXT, "factorykit"]]));
    return new Blob(parts.concat(foot, int32(foot.length), encoder.encode("PAR1")), { type: "application/vnd.apache.parquet" });
  };
})();
