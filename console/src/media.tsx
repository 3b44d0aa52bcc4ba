// The media library: folders, thumbnails, previews, uploads with progress, signed links.
import { type FileInfo, isSelkieError, type ListFiles } from "@selkie/client";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, holder, route, to } from "./session";
import { texts } from "./texts";
import { Button, Copy, Dialog, Icon, Problem, useLoad, useTitle } from "./ui";
import { sizeOf } from "./values";

const words = texts.media;
const PAGE_FILES = 120;
/** Maximum files from whose paths the folders are listed: the API lists only files, not folders. */
const FOLDERS_FROM_FILES = 50_000;
/** The API refuses a larger `limit`. */
const ANSWER_MAX_FILES = 10_000;
const SIGNED_SECONDS = 3_600;
/** The size in bytes of an upload's parts: small, so that its progress can be shown. */
const PART_BYTES = 1_000_000;

interface Upload {
  id: number;
  file: File;
  folder: string;
  isPrivate: boolean;
  sent: number;
  error?: unknown;
  isDone?: true;
}

interface Files {
  list: FileInfo[];
  hasMore: boolean;
}

/** Reads the newest files, as many answers as it takes: a role or the server may allow fewer files in one answer. */
async function newest(most: number, options: ListFiles = {}): Promise<Files> {
  const list: FileInfo[] = [];
  for (;;) {
    const limit = Math.min(most - list.length, ANSWER_MAX_FILES);
    const part = await api().media.list({ ...options, limit, offset: list.length });
    list.push(...part);
    const hasMore = part.more === true && part.length > 0;
    if (!hasMore || list.length >= most) return { list, hasMore };
  }
}

export function Media() {
  const folder = route.value.options.get("folder");
  const [kind, setKind] = useState<string>("");
  const [limit, setLimit] = useState(PAGE_FILES);
  const [chosen, setChosen] = useState<FileInfo | null>(null);
  const [uploads, setUploads] = useState<Upload[]>([]);
  const [isPrivate, setPrivate] = useState(false);
  const [isOver, setOver] = useState(false);
  const count = useRef(0);
  useTitle(words.heading);
  useEffect(() => setLimit(PAGE_FILES), [folder, kind]);
  const {
    value: files,
    error,
    again,
  } = useLoad(
    () =>
      newest(limit, {
        ...(folder === null ? {} : { folder }),
        ...(kind ? { type: kind as "image" } : {}),
      }),
    [folder, kind, limit],
  );
  const [shown, setShown] = useState(files);
  useEffect(() => void (files && setShown(files)), [files]);
  const all = useLoad(() => newest(FOLDERS_FROM_FILES), []);
  const folders = useMemo(() => {
    const names = new Set<string>([...(all.value?.list ?? []), ...(shown?.list ?? [])].map((file) => file.folder));
    return [...names].sort((one, other) => one.localeCompare(other));
  }, [all.value, shown]);
  const mayWrite = holder.value.access !== "read";

  const patch = (id: number, part: Partial<Upload>) =>
    setUploads((list) => list.map((one) => (one.id === id ? { ...one, ...part } : one)));
  const send = async ({ id, file, folder: target, isPrivate }: Upload, update?: true) => {
    patch(id, { error: undefined, sent: 0 });
    try {
      await api().media.upload(file, {
        ...(target ? { folder: target } : {}),
        ...(update ? { update } : {}),
        // Never `false`, which would make a private file public that is replaced.
        ...(isPrivate ? { private: true } : {}),
        resumableAbove: PART_BYTES,
        chunkSize: PART_BYTES,
        onProgress: ({ sent }) => patch(id, { sent }),
      });
      patch(id, { isDone: true, sent: file.size });
      again();
    } catch (error) {
      patch(id, { error });
    }
  };
  const add = async (list: Iterable<File>) => {
    const added = [...list].map(
      (file): Upload => ({ id: ++count.current, file, folder: folder ?? "", isPrivate, sent: 0 }),
    );
    setUploads((before) => [...before.filter(({ isDone }) => !isDone), ...added]);
    for (const upload of added) await send(upload);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    if (mayWrite && event.dataTransfer?.files.length) void add(event.dataTransfer.files);
  };
  const link = (name: string | null, label: string) => (
    <a
      class="side-link"
      href={to("media", [], name === null ? {} : { folder: name })}
      aria-current={folder === name ? "page" : undefined}
    >
      <Icon name="folder" />
      <span class="cut">{label}</span>
    </a>
  );
  return (
    <div
      class={isOver ? "media over" : "media"}
      onDrop={drop}
      onDragOver={(event) => {
        event.preventDefault();
        if (mayWrite) setOver(true);
      }}
      onDragLeave={() => setOver(false)}
    >
      <div class="head">
        <h1>{words.heading}</h1>
        <label class="inline">
          <select aria-label={words.filter} value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            {Object.entries(words.kinds).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <span class="grow" />
        {mayWrite && (
          <>
            <span class="dim small">{isPrivate ? words.privateHint : words.publicHint}</span>
            <label class="check">
              <input
                type="checkbox"
                checked={isPrivate}
                onChange={(event) => setPrivate(event.currentTarget.checked)}
              />
              {words.private}
            </label>
            <label class="button main file">
              <Icon name="upload" />
              {words.upload}
              <input
                type="file"
                multiple
                aria-label={words.upload}
                onChange={(event) => event.currentTarget.files && void add([...event.currentTarget.files])}
              />
            </label>
          </>
        )}
      </div>
      {uploads.length > 0 && (
        <ul class="uploads" aria-label={words.upload}>
          {uploads.map((upload) => (
            <li key={upload.id}>
              <span class="cut">{upload.file.name}</span>
              <progress value={upload.sent} max={upload.file.size || 1} aria-label={words.progress(upload.file.name)} />
              <span role="status">
                {upload.isDone ? (
                  words.done
                ) : upload.error ? (
                  <span class="fault">{words.failed}</span>
                ) : (
                  `${Math.floor((100 * upload.sent) / (upload.file.size || 1))} %`
                )}
              </span>
              {isSelkieError(upload.error, "media_exists") && (
                <Button label={words.replace} onClick={() => void send(upload, true)} />
              )}
              {upload.error !== undefined && <span class="fault why">{(upload.error as Error).message}</span>}
              <Button
                icon="close"
                bare
                look="quiet"
                label={words.dismiss}
                onClick={() => setUploads(uploads.filter(({ id }) => id !== upload.id))}
              />
            </li>
          ))}
        </ul>
      )}
      <div class="library">
        <nav aria-label={words.folders}>
          {link(null, words.allFolders)}
          {folders.map((name) => (
            <div key={name}>{link(name, name || words.root)}</div>
          ))}
          {all.value?.hasMore && <p class="dim small">{words.someFolders(FOLDERS_FROM_FILES)}</p>}
        </nav>
        <div class="files" tabIndex={0} role="group" aria-label={words.heading}>
          {error ? <Problem error={error} again={again} /> : null}
          {shown?.list.length === 0 && <p class="pad">{mayWrite ? words.empty : words.emptyRead}</p>}
          <ul>
            {shown?.list.map((file) => (
              <li key={file.id}>
                <button type="button" class="thumb" onClick={() => setChosen(file)}>
                  <Thumbnail file={file} />
                  <span class="cut">{file.name}</span>
                  <span class="dim small">
                    {sizeOf(file.size)}
                    {file.private && (
                      <>
                        {" "}
                        · <Icon name="lock" /> {words.isPrivate}
                      </>
                    )}
                  </span>
                </button>
              </li>
            ))}
          </ul>
          {shown?.hasMore && <Button label={words.more} onClick={() => setLimit(limit + PAGE_FILES)} />}
        </div>
      </div>
      {chosen && (
        <Preview
          file={chosen}
          mayWrite={mayWrite}
          onClose={() => setChosen(null)}
          onRemoved={() => {
            setChosen(null);
            again();
            all.again();
          }}
        />
      )}
      {isOver && (
        <p class="drop" aria-hidden="true">
          {words.drop} {words.into(folder ?? "")}
        </p>
      )}
    </div>
  );
}

/** Returns the path of a file's bytes on this host: the page may not load from another host, even if the file's URL
 * names one. */
async function addressOf(file: FileInfo, thumbnail: boolean): Promise<string> {
  const { url } = file.private ? await api().media.sign(file.id, { expiresIn: SIGNED_SECONDS }) : file;
  const { pathname, search } = new URL(api().media.url({ url }, thumbnail ? { thumbnail } : {}));
  return pathname + search;
}

function Thumbnail({ file }: { file: FileInfo }) {
  const [address, setAddress] = useState<string | null>(null);
  const has = Boolean(file.thumbnailUrl);
  useEffect(() => {
    setAddress(null);
    if (has) addressOf(file, true).then(setAddress, () => {});
  }, [file.id, file.sha256]);
  return (
    <span class="picture">
      {address ? <img src={address} alt="" loading="lazy" /> : <Icon name={file.type === "image" ? "media" : "file"} />}
    </span>
  );
}

function Preview({
  file,
  mayWrite,
  onClose,
  onRemoved,
}: {
  file: FileInfo;
  mayWrite: boolean;
  onClose: () => void;
  onRemoved: () => void;
}) {
  const { value: address } = useLoad(() => addressOf(file, false), [file.id]);
  const [signed, setSigned] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const sign = () =>
    api()
      .media.sign(file.id, { expiresIn: SIGNED_SECONDS })
      .then(({ url }) => setSigned(url), setError);
  const remove = () => api().media.remove(file.id).then(onRemoved, setError);
  return (
    <Dialog label={file.name} onClose={onClose}>
      <div class="preview">
        <div class="row">
          <h2 class="cut grow">{file.name}</h2>
          <Button icon="close" bare look="quiet" label={words.close} onClick={onClose} />
        </div>
        {address && (
          <div class="stage">
            {file.type === "image" && <img src={address} alt={file.name} />}
            {file.type === "video" && <video src={address} controls aria-label={file.name} />}
            {file.type === "audio" && <audio src={address} controls aria-label={file.name} />}
            {/^(text\/|application\/json)/.test(file.mime) && <TextPreview address={address} />}
          </div>
        )}
        <dl>
          <dt>{words.folder}</dt>
          <dd>{file.folder || words.root}</dd>
          <dt>{words.type}</dt>
          <dd>{file.mime}</dd>
          <dt>{words.size}</dt>
          <dd>
            {sizeOf(file.size)}
            {file.width ? `, ${file.width} × ${file.height}` : ""}
          </dd>
          <dt>{words.created}</dt>
          <dd>{file.createdAt}</dd>
          <dt>{words.sha}</dt>
          <dd>
            <code class="wrap">{file.sha256}</code>
          </dd>
        </dl>
        {error !== null && <Problem error={error} />}
        {signed && (
          <div class="signed">
            <p class="dim">{words.signed}</p>
            <pre class="code" tabIndex={0}>
              {signed}
            </pre>
            <Copy text={signed} label={words.copy} done={texts.table.copied} />
          </div>
        )}
        <div class="row">
          {address && (
            <a class="button" href={address} target="_blank" rel="noreferrer">
              {words.open}
            </a>
          )}
          {address && (
            <a class="button" href={`${address}${address.includes("?") ? "&" : "?"}download=true`}>
              <Icon name="download" />
              {words.download}
            </a>
          )}
          {file.private ? (
            mayWrite && <Button icon="link" label={words.sign} onClick={() => void sign()} />
          ) : (
            <Copy text={file.url} label={words.copy} done={texts.table.copied} />
          )}
          <span class="grow" />
          {mayWrite && !isAsking && (
            <Button icon="trash" look="danger" label={words.remove} onClick={() => setAsking(true)} />
          )}
        </div>
        {isAsking && (
          <div class="notice danger row" role="alert">
            <span class="grow">{words.confirm(file.name)}</span>
            <Button label={texts.cancel} onClick={() => setAsking(false)} />
            <Button look="danger" label={texts.confirm} onClick={() => void remove()} />
          </div>
        )}
      </div>
    </Dialog>
  );
}

const TEXT_BYTES = 20_000;

function TextPreview({ address }: { address: string }) {
  const { value } = useLoad(
    async () => (await fetch(address, { headers: { range: `bytes=0-${TEXT_BYTES - 1}` } })).text(),
    [address],
  );
  return (
    <pre class="code" tabIndex={0}>
      {value}
    </pre>
  );
}
