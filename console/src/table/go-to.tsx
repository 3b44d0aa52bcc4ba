// Finds a record by its key.
import { useState } from "preact/hooks";
import { texts } from "../texts";
import { Button, Problem } from "../ui";
import type { Row } from "../values";

interface Props {
  keys: string[];
  read: (key: string[]) => Promise<Row | null>;
  onFound: (row: Row) => void;
}

export function GoTo({ keys, read, onFound }: Props) {
  const [text, setText] = useState("");
  const [isMissing, setMissing] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    setError(null);
    setMissing(false);
    // A single key may have commas.
    const key = keys.length === 1 ? [text.trim()] : text.split(",").map((part) => part.trim());
    try {
      const row = await read(key);
      if (row) onFound(row);
      else setMissing(true);
    } catch (refused) {
      setError(refused);
    }
  };
  return (
    <form class="stack" onSubmit={(event) => void submit(event)}>
      <div class="row">
        <input
          value={text}
          required
          aria-label={texts.rows.goHint(keys.join(", "))}
          placeholder={texts.rows.goHint(keys.join(", "))}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" look="main" label={texts.rows.goOpen} />
      </div>
      {isMissing && (
        <p class="fault" role="alert">
          {texts.rows.goNone}
        </p>
      )}
      {error !== null && <Problem error={error} />}
    </form>
  );
}
