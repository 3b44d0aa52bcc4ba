// What is accepted as a delivery of a webhook, beside the reference library of Standard Webhooks.
import assert from "node:assert/strict";
import test from "node:test";
import { Webhook } from "standardwebhooks";
import { verifyWebhook } from "../../dist/index.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const ID = "msg_p5jXN8AQM9LWM0D4loKWxJek";

/** The example of the specification. */
const EXAMPLE = {
  body: '{"test": 2432232314}',
  time: 1_614_265_330,
  signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};

const headersOf = ({ id = ID, time = EXAMPLE.time, signature = EXAMPLE.signature } = {}) => ({
  "webhook-id": id,
  "webhook-timestamp": String(time),
  "webhook-signature": signature,
});

test.beforeEach((context) => {
  context.mock.timers.enable({ apis: ["Date"], now: EXAMPLE.time * 1000 });
});

test("the example of the specification is verified", async () => {
  assert.deepEqual(await verifyWebhook(EXAMPLE.body, headersOf(), SECRET), { test: 2432232314 });
});

test("headers may be of any kind", async () => {
  const own = headersOf();
  const big = Object.fromEntries(Object.entries(own).map(([name, value]) => [name.toUpperCase(), value]));
  const lists = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, [value]]));
  for (const headers of [new Headers(own), big, lists, { ...own, get: "a header", other: undefined }])
    assert.ok(await verifyWebhook(EXAMPLE.body, headers, SECRET));
});

test("one signature of one secret suffices", async () => {
  for (const [signature, secrets] of [
    [`v1,AAAA v1a,${EXAMPLE.signature.slice(3)} v1,!!! v1 ${EXAMPLE.signature}`, SECRET],
    [EXAMPLE.signature, [OTHER, SECRET]],
    [EXAMPLE.signature, SECRET.replace("whsec_", "")],
  ])
    assert.ok(await verifyWebhook(EXAMPLE.body, headersOf({ signature }), secrets), signature);
});

test("what is not signed is refused, with the cause", async () => {
  const { body, time, signature } = EXAMPLE;
  const without = (name) => ({ ...headersOf(), [name]: undefined });
  const forged = /signature is not of this body and these secrets/;
  const late = /not within 300 s/;
  for (const [text, headers, secrets, message, options] of [
    [`${body} `, headersOf(), SECRET, forged],
    [body, headersOf(), OTHER, forged],
    [body, headersOf({ id: "msg_other" }), SECRET, forged],
    [body, headersOf({ time: time + 1 }), SECRET, forged],
    [body, headersOf({ signature: signature.replace("v1,", "v2,") }), SECRET, forged],
    [body, headersOf({ signature: signature.slice(3) }), SECRET, forged],
    [body, headersOf({ signature: "v1," }), SECRET, forged],
    [body, headersOf({ signature: `v1,${signature.slice(3, 20)}` }), SECRET, forged],
    [body, headersOf({ time: time - 301 }), SECRET, late],
    [body, headersOf({ time: time + 301 }), SECRET, late],
    [body, headersOf({ time: time - 9 }), SECRET, /not within 8 s/, { toleranceSeconds: 8 }],
    [body, headersOf(), SECRET, /not within NaN s/, { toleranceSeconds: Number.NaN }],
    [body, headersOf({ time: "1614265330.5" }), SECRET, /webhook-timestamp is no time/],
    [body, without("webhook-id"), SECRET, /no header webhook-id/],
    [body, without("webhook-timestamp"), SECRET, /no header webhook-timestamp/],
    [body, without("webhook-signature"), SECRET, /no header webhook-signature/],
    [body, new Headers(), SECRET, /no header webhook-id/],
    [body, headersOf(), [], /A secret is needed/],
    [body, headersOf(), "", /must be whsec_ and Base64/],
    [body, headersOf(), undefined, /must be whsec_ and Base64/],
    [body, headersOf(), [SECRET, "whsec_"], /must be whsec_ and Base64/],
    [JSON.parse(body), headersOf(), SECRET, /before it is parsed/],
  ])
    await assert.rejects(verifyWebhook(text, headers, secrets, options), message, JSON.stringify({ headers, secrets }));
});

test("a signed body that is no JSON is refused", async () => {
  const signature = new Webhook(SECRET).sign(ID, new Date(), "changes");
  await assert.rejects(verifyWebhook("changes", headersOf({ signature }), SECRET), SyntaxError);
});

test("the time may differ by as much as is allowed", async () => {
  for (const [seconds, options] of [
    [300, undefined],
    [-300, undefined],
    [3_600, { toleranceSeconds: 3_600 }],
  ]) {
    const time = EXAMPLE.time + seconds;
    const signature = new Webhook(SECRET).sign(ID, new Date(time * 1000), EXAMPLE.body);
    assert.ok(await verifyWebhook(EXAMPLE.body, headersOf({ time, signature }), SECRET, options));
  }
});

test("the reference library comes to the same", async () => {
  const body = '{"changes":[{"type":"insert","record":{"name":"Zoë ☃ 𝄞"}}]}';
  const random = (count) => crypto.getRandomValues(new Uint8Array(count));
  for (let round = 0; round < 50; round += 1) {
    const secret = `whsec_${Buffer.from(random(24 + (round % 41))).toString("base64")}`;
    const reference = new Webhook(secret);
    const signature = reference.sign(ID, new Date(), body);
    const headers = headersOf({ signature });
    assert.deepEqual(await verifyWebhook(body, headers, secret), reference.verify(body, headers));
    // The last digit of the Base64 has bits that mean nothing.
    const at = 3 + (round % 42);
    const forged = `${signature.slice(0, at)}${signature[at] === "A" ? "B" : "A"}${signature.slice(at + 1)}`;
    const wrong = headersOf({ signature: forged });
    assert.throws(() => reference.verify(body, wrong));
    await assert.rejects(verifyWebhook(body, wrong, secret), forged);
  }
});
