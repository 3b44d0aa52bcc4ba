// A client of resumable uploads that uses npm's tus-js-client. The end-to-end suite runs it:
//
//   node tus.mjs begin <endpoint> <file> <chunk bytes> <stop after bytes>   prints the upload's URL, and ends in the middle
//   node tus.mjs resume <upload URL> <file> <chunk bytes>                    prints the id of the complete file
//   node tus.mjs whole <endpoint> <file> <chunk bytes> [option]…             uploads at once, and prints the file's id
//
// SELKIE_KEY is the key; SELKIE_TUS_METADATA a JSON object of metadata. Options: with-creation, override-patch.
import { createReadStream, statSync, writeSync } from "node:fs";
import { Upload } from "tus-js-client";

const [command, address, file, chunk, ...rest] = process.argv.slice(2);
const size = statSync(file).size;
const options = {
  headers: { Authorization: `Bearer ${process.env.SELKIE_KEY}` },
  metadata: JSON.parse(process.env.SELKIE_TUS_METADATA ?? "{}"),
  chunkSize: Number(chunk),
  uploadSize: size,
  retryDelays: [0, 200, 1000, 3000, 5000],
  uploadDataDuringCreation: rest.includes("with-creation"),
  overridePatchMethod: rest.includes("override-patch"),
};

let last;
const outcome = await new Promise((resolve, reject) => {
  const upload = new Upload(createReadStream(file), {
    ...options,
    ...(command === "resume" ? { uploadUrl: address } : { endpoint: address }),
    onAfterResponse: (_, response) => {
      last = response.getHeader("Selkie-Media-Id") ?? last;
    },
    onProgress: (sent) => {
      if (command === "begin" && sent >= Number(rest[0])) {
        // Ends without cancelling the upload, as in a power failure.
        writeSync(1, `${upload.url}\n`);
        process.exit(0);
      }
    },
    onError: reject,
    onSuccess: () => resolve(last),
  });
  upload.start();
}).catch((error) => {
  console.error(String(error));
  process.exit(1);
});
console.log(outcome);
