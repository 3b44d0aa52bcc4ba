// Signing in: a request checks the key before the tab stores it.
import { useEffect, useState } from "preact/hooks";
import { clientOf, signIn, signInByLink, takeLink } from "./session";
import { texts } from "./texts";
import { Button, Problem } from "./ui";

export function SignIn() {
  const [own, setOwn] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [missing, setMissing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${texts.signIn.heading} · ${texts.title}`;
    const link = takeLink();
    if (!link) return;
    setBusy(true);
    signInByLink(link).catch((refused) => (setError(refused), setBusy(false)));
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const key = own.trim().replace(/^Bearer\s+/i, "");
    setMissing(!key);
    if (!key) return;
    setBusy(true);
    setError(null);
    try {
      await clientOf(key).request("GET", "crud");
      signIn(key);
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <main class="signin" id="content">
      <form onSubmit={(event) => void submit(event)}>
        <img src="/console/icon.svg" alt="" width="40" height="40" />
        <h1>{texts.signIn.heading}</h1>
        <label for="key">{texts.signIn.key}</label>
        <input
          id="key" type="password" autocomplete="off" spellcheck={false} value={own} autofocus
          aria-describedby="key-hint" aria-invalid={missing || undefined}
          onInput={(event) => setOwn(event.currentTarget.value)}
        />
        <p id="key-hint" class={missing ? "fault" : "dim"}>{missing ? texts.signIn.empty : texts.signIn.hint}</p>
        {error !== null && <Problem error={error} />}
        <Button type="submit" look="main" label={isBusy ? texts.signIn.busy : texts.signIn.submit} disabled={isBusy} />
        <p class="dim">
          {texts.signIn.how} <code>selkie key create --access full</code>
        </p>
      </form>
    </main>
  );
}
