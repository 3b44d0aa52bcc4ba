// Uploads: which form they take, and how a resumable one goes on after failures.
import assert from "node:assert/strict";
import test from "node:test";
import { broken, failure, serve, success } from "./server.mjs";

const at =
  (offset, headers = {}) =>
  () =>
    new Response(null, { status: 204, headers: { "upload-offset": String(offset), ...headers } });
const created = () => new Response(null, { status: 201, headers: { location: "/api/v1/media/tus/u1" } });
const finished = { "selkie-media-id": "7", "selkie-media-url": "http://selkie.test/media/p/users/7/%C3%A4.bin?v=1" };
const whole = { id: 7, name: "ä.bin", folder: "users/7", url: finished["selkie-media-url"] };
const options = { name: "ä.bin", folder: "f", resumableAbove: 5, chunkSize: 4, timeout: 0 };
const file = new Blob(["0123456789"], { type: "video/mp4" });

test("a small file is one form", async () => {
  const { selkie, sent } = serve([success([{ id: 1, name: "a.png" }])]);
  const progress = [];
  const png = new File(["abc"], "a.png", { type: "image/png" });
  const uploaded = await selkie.media.upload(png, {
    folder: "f",
    private: true,
    onProgress: ({ sent, total }) => progress.push([sent, total]),
  });
  assert.deepEqual(uploaded, { id: 1, name: "a.png" });
  const fields = Object.fromEntries([...sent[0].body].map(([name, value]) => [name, value.name ?? value]));
  assert.deepEqual(fields, { type: "image", folder: "f", private: "true", file: "a.png" });
  assert.deepEqual(progress, [
    [0, 3],
    [3, 3],
  ]);
  await assert.rejects(selkie.media.upload(new Blob(["a"])), /The file has no name/);
});

test("a large file goes in parts, with its metadata", async () => {
  const { selkie, sent } = serve([created, at(4), at(8), at(10, finished)]);
  const progress = [];
  let address;
  const uploaded = await selkie.media.upload(file, {
    ...options,
    onProgress: (p) => progress.push(p.sent),
    onStart: (upload) => (address = upload),
  });
  assert.deepEqual(uploaded, whole);
  assert.equal(address, "http://selkie.test/api/v1/media/tus/u1");
  assert.deepEqual(progress, [0, 4, 8, 10]);
  const [create, ...parts] = sent;
  const metadata = create.headers["upload-metadata"].split(",").map((pair) => pair.split(" "));
  const decoded = Object.fromEntries(metadata.map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
  assert.deepEqual(decoded, { filename: "ä.bin", filetype: "video/mp4", kind: "video", folder: "f" });
  const pieces = await Promise.all(
    parts.slice(0, 3).map(async ({ headers, body }) => [headers["upload-offset"], await body.text()]),
  );
  assert.deepEqual(pieces, [
    ["0", "0123"],
    ["4", "4567"],
    ["8", "89"],
  ]);
});

test("a part that failed is followed by the offset's question", async (t) => {
  t.mock.method(Math, "random", () => 0);
  const mismatch = failure(409, "upload_offset_mismatch");
  for (const failed of [broken, mismatch, failure(503, "database_unavailable", { retryable: true })]) {
    const { selkie, sent } = serve([created, at(4), failed, at(6), at(10, finished)]);
    await selkie.media.upload(file, options);
    assert.deepEqual(
      sent.slice(1, 5).map(({ method }) => method),
      ["PATCH", "PATCH", "HEAD", "PATCH"],
    );
    assert.equal(sent[4].headers["upload-offset"], "6");
  }
  const lastAnswerLost = serve([created, at(8), broken, at(10, finished)]);
  assert.equal((await lastAnswerLost.selkie.media.upload(file, options)).id, 7);
});

test("a refusal ends an upload, and so do failures without progress", async (t) => {
  t.mock.method(Math, "random", () => 0);
  await assert.rejects(serve([created, failure(400, "invalid_media")]).selkie.media.upload(file, options), {
    code: "invalid_media",
  });
  const { selkie, sent } = serve([created, broken, at(0), broken, at(0), broken]);
  await assert.rejects(selkie.media.upload(file, { ...options, retries: 2 }), { code: "network_error" });
  assert.equal(sent.length, 6);
});

test("an interrupted upload is resumed by its address, and the file is known without a read", async () => {
  const { selkie, sent } = serve([at(8), at(10, finished), at(10, { ...finished, "selkie-media-thumbnail-url": "t" })]);
  const resume = "http://selkie.test/api/v1/media/tus/u1";
  const uploaded = await selkie.media.upload(file, { ...options, resume });
  assert.deepEqual(uploaded, whole);
  assert.deepEqual(
    sent.map(({ method }) => method),
    ["HEAD", "PATCH"],
  );
  assert.deepEqual(await selkie.media.upload(file, { ...options, resume, type: "image" }), {
    ...whole,
    thumbnailUrl: "t",
  });
});

test("a file's folder may be called as the path of all files is", async () => {
  for (const [url, path, folder] of [
    ["http://selkie.test/", "/media/p/media/a.png", "media"],
    ["http://selkie.test/", "/media/p/x/media/y/a.png", "x/media/y"],
    ["http://selkie.test/", "/media/media/media/a.png", "media"],
    ["http://selkie.test/", "/media/p/a.png", ""],
    ["http://selkie.test/media/", "/media/media/p/a.png", ""],
    ["http://selkie.test/media/", "/media/p/x/a.png", "x"],
  ]) {
    const address = `http://cdn.test${path}?v=1`;
    const { selkie } = serve([created, at(10, { ...finished, "selkie-media-url": address })], { url });
    const uploaded = await selkie.media.upload(file, options);
    assert.deepEqual(uploaded, { id: 7, name: "a.png", folder, url: address }, path);
  }
});
