// Resumable uploads by tus 1.0: create, send parts, ask for the offset after a failure. Must not know the files'
// contents.
import { SelkieError } from "./errors.js";
import { pause, type Http, type Request } from "./http.js";
import type { UploadOptions } from "./media.js";
import type { CallOptions } from "./types.js";

const CHUNK_BYTES = 5_000_000;

const base64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** The state of an upload: its offset in bytes, and the finished file once the upload is complete. */
interface State {
  offset: number;
  file?: { id: number; url: string; thumbnailUrl: string | null };
}

/** Uploads a file and returns it. After a temporary failure, asks the server for the offset and continues there;
 * throws after more than `retries` failures in a row. */
export async function resumable(
  http: Http,
  blob: Blob,
  metadata: Record<string, unknown>,
  options: UploadOptions,
  within: (bytes: number) => CallOptions,
): Promise<NonNullable<State["file"]>> {
  const total = blob.size;
  const send = <R>(
    request: Omit<Request, "repeat">,
    repeat: Request["repeat"],
    call: CallOptions,
    read: (response: Response) => R,
  ) =>
    http.send(
      { ...request, repeat, headers: { "tus-resumable": "1.0.0", ...request.headers } },
      call,
      async (response) => read(response),
    );
  const state = ({ headers }: Response): State => {
    const id = headers.get("selkie-media-id");
    const file = {
      id: Number(id),
      url: headers.get("selkie-media-url") ?? "",
      thumbnailUrl: headers.get("selkie-media-thumbnail-url"),
    };
    return { offset: Number(headers.get("upload-offset")), file: id ? file : undefined };
  };

  const create = () => {
    const given = Object.entries(metadata).filter(([, value]) => value !== undefined && value !== "");
    const pairs = given.map(([key, value]) => `${key} ${base64(String(value))}`);
    const headers = { "upload-length": String(total), "upload-metadata": pairs.join() };
    return send(
      { method: "POST", path: "media/tus", headers },
      "always",
      options,
      (response) => new URL(response.headers.get("location") ?? "", `${http.url}/`).href,
    );
  };
  const upload = options.resume ?? (await create());
  options.onStart?.(upload);

  const ask = () => send({ method: "HEAD", path: upload }, "always", options, state);
  const patch = (offset: number) => {
    const body = blob.slice(offset, offset + (options.chunkSize ?? CHUNK_BYTES));
    const headers = { "upload-offset": String(offset), "content-type": "application/offset+octet-stream" };
    return send({ method: "PATCH", path: upload, headers, body }, "refused", within(body.size), state);
  };

  const retries = options.retries ?? http.options.retries ?? 3;
  let now: State = options.resume ? await ask() : { offset: 0 };
  for (let failures = 0; ; ) {
    options.onProgress?.({ sent: now.offset, total });
    if (now.file) return now.file;
    try {
      now = await patch(now.offset);
      failures = 0;
    } catch (error) {
      const passes = error instanceof SelkieError && (error.retryable || error.code === "upload_offset_mismatch");
      if (!passes || failures >= retries) throw error;
      await pause(failures, options.signal);
      failures += 1;
      now = await ask();
    }
  }
}
