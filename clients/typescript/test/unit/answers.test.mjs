// What calls make of answers: lists, pages, streams, tags, URLs of files.
import assert from "node:assert/strict";
import test from "node:test";
import { etagOf } from "../../dist/index.js";
import { serve, success } from "./server.mjs";

/** An answer whose body comes in these pieces, and may break off. */
const body =
  (pieces, { headers = {}, breaks = false } = {}) =>
  () => {
    const stream = new ReadableStream({
      pull(control) {
        const piece = pieces.shift();
        if (piece) control.enqueue(piece);
        else if (breaks) control.error(new TypeError("terminated"));
        else control.close();
      },
    });
    return new Response(stream, { headers });
  };
const bytes = (text) => new TextEncoder().encode(text);
const all = async (records) => {
  const list = [];
  for await (const record of records) list.push(record);
  return list;
};

test("a list is an array with its cursor and count beside", async () => {
  const list = await serve([success([{ id: 1 }], { next: "n", count: 9, limited: true })])
    .selkie.table("a.b")
    .list();
  assert.deepEqual(list, [{ id: 1 }]);
  assert.deepEqual([list.next, list.count, list.limited], ["n", 9, true]);
});

test("a list of files says that it was cut", async () => {
  const { selkie } = serve([success([{ id: 1 }], { count: 9, limited: true, more: true }), success([{ id: 1 }])]);
  const cut = await selkie.media.list();
  assert.deepEqual(cut, [{ id: 1 }]);
  assert.deepEqual([cut.more, cut.limited, cut.count], [true, true, 9]);
  const whole = await selkie.media.list();
  assert.deepEqual([whole.more, whole.limited], [undefined, undefined]);
});

test("a batch says which of its lists were cut, or that any may be", async () => {
  const answered = [[1], 7, [2], [3]];
  for (const [envelope, cut] of [
    [{}, [undefined, undefined, undefined, undefined]],
    [{ more: true, limited: true }, [true, undefined, true, undefined]],
    [{ more: true, cut: [2] }, [undefined, undefined, true, undefined]],
  ]) {
    const { selkie } = serve([success(structuredClone(answered), envelope)]);
    const answers = await selkie.batch((batch) => {
      const table = batch.table("a.b");
      return [table.list({ limit: 1 }), table.insert({}), table.list(), table.insert([{}])];
    });
    assert.deepEqual(answers, answered);
    assert.deepEqual([answers.more, answers.limited], [envelope.more, envelope.limited]);
    assert.deepEqual(
      answers.map(({ more }) => more),
      cut,
    );
  }
});

test("pages follow the cursor, also from a page by number", async () => {
  const { selkie, sent } = serve([success([1, 2], { next: "n" }), success([3])]);
  assert.deepEqual(await all(selkie.table("a.b").pages({ page: 2, limit: 2 })), [[1, 2], [3]]);
  assert.deepEqual(
    sent.map((request) => request.body),
    [
      { limit: 2, page: 2 },
      { limit: 2, after: "n" },
    ],
  );
});

test("a stream joins lines and characters that arrive in pieces", async () => {
  const whole = bytes('{"a":"ü"}\n{"a":2}\n{"a":3}');
  for (let cut = 1; cut < whole.length; cut += 1) {
    const { selkie } = serve([body([whole.slice(0, cut), whole.slice(cut)])]);
    assert.deepEqual(await all(selkie.table("a.b").stream()), [{ a: "ü" }, { a: 2 }, { a: 3 }]);
  }
});

test("a stream that breaks off fails after the records that came", async () => {
  const records = [];
  const reading = (async () => {
    const stream = serve([body([bytes('{"a":1}\n{"a"')], { breaks: true })])
      .selkie.table("a.b")
      .stream();
    for await (const record of stream) records.push(record);
  })();
  await assert.rejects(reading, { code: "network_error" });
  assert.deepEqual(records, [{ a: 1 }]);
});

test("a stream that ends with the mark of a broken answer fails", async () => {
  const { selkie } = serve([body([bytes('{"a":1}\n{"error":"The answer broke off here.')])]);
  await assert.rejects(all(selkie.table("a.b").stream()), { code: "network_error" });
});

test("a stream that is left early is cancelled", async () => {
  let cancelled = false;
  const endless = () =>
    new Response(
      new ReadableStream({
        pull: (control) => control.enqueue(bytes("1\n")),
        cancel: () => {
          cancelled = true;
        },
      }),
    );
  for await (const record of serve([endless]).selkie.table("a.b").stream()) if (record === 1) break;
  assert.ok(cancelled);
});

test("an aborted stream fails with the signal's reason", async () => {
  const control = new AbortController();
  const reason = new Error("enough");
  // As fetch does: the signal ends the body.
  const answer = (signal) =>
    new Response(
      new ReadableStream({
        start(body) {
          body.enqueue(bytes("1\n"));
          signal.addEventListener("abort", () => body.error(signal.reason));
        },
      }),
    );
  const reading = (async () => {
    for await (const record of serve([answer]).selkie.table("a.b").stream({ signal: control.signal }))
      if (record === 1) control.abort(reason);
  })();
  await assert.rejects(reading, reason);
});

test("a stream that the role limits is read by pages, up to the limit", async () => {
  const limited = body([bytes("1\n2\n")], { headers: { "x-selkie-limited": "true" } });
  const { selkie } = serve([limited, success([1, 2], { next: "n", limited: true }), success([3, 4], { next: "m" })]);
  assert.deepEqual(await all(selkie.table("a.b").stream({ limit: 3 })), [1, 2, 3]);
});

test("a record that was read whole has its ETag, and ifMatch takes it", async () => {
  const tagged = (payload, etag) => () => Response.json({ success: true, payload }, { headers: { etag } });
  const { selkie, sent } = serve([tagged({ id: 1 }, '"t"'), tagged({ id: 1 }, '"p"'), success(1)]);
  const table = selkie.table("a.b");
  const record = await table.get(1);
  const part = await table.get(1, { select: ["id"] });
  assert.deepEqual([etagOf(record), etagOf(part)], ['"t"', undefined]);
  await table.update(1, { a: 1 }, { ifMatch: record });
  assert.equal(sent[2].headers["if-match"], '"t"');
  await assert.rejects(table.update(1, { a: 1 }, { ifMatch: part }), /ifMatch is a record without an ETag/);
});

test("a file's URL keeps its version and takes options", () => {
  const { selkie } = serve([]);
  const file = { url: "/media/p/a%20b.txt?v=1" };
  assert.equal(selkie.media.url(file), "http://selkie.test/media/p/a%20b.txt?v=1");
  assert.equal(
    selkie.media.url(file, { download: "c.txt" }),
    "http://selkie.test/media/p/a%20b.txt?v=1&download=c.txt",
  );
  assert.equal(selkie.media.url(file, { thumbnail: true }), "http://selkie.test/media/p/a%20b.txt?v=1&thumbnail=true");
});
