// Signing in with a key, which a request checks before the tab stores it, or by a link, which the user must accept.
import { useState } from "preact/hooks";
import { IssuerButtons } from "./signin-issuer";
import { clientOf, holder, holderOf, key as present, link, signIn, signInByLink } from "./session";
import { texts } from "./texts";
import { Button, Problem, useTitle } from "./ui";

export function SignIn() {
  const [own, setOwn] = useState("");
  const [error, setError] = useState<unknown>(null);
  const [missing, setMissing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  useTitle(texts.signIn.heading);
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
          id="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={own}
          autofocus
          aria-describedby="key-hint"
          aria-invalid={missing || undefined}
          onInput={(event) => setOwn(event.currentTarget.value)}
        />
        <p id="key-hint" class={missing ? "fault" : "dim"}>
          {missing ? texts.signIn.empty : texts.signIn.hint}
        </p>
        {error !== null && <Problem error={error} />}
        <Button type="submit" look="main" label={isBusy ? texts.signIn.busy : texts.signIn.submit} disabled={isBusy} />
        <p class="dim">
          {texts.signIn.how} <code>selkie key create --access full</code>
        </p>
        <IssuerButtons />
      </form>
    </main>
  );
}

/** Asks before a link signs in: anybody can write a link to a project of their own. */
export function LinkSignIn({ token }: { token: string }) {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const accept = async () => {
    setBusy(true);
    try {
      await signInByLink(token);
      link.value = null;
    } catch (refused) {
      setError(refused);
    }
  };
  return (
    <main class="signin" id="content">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void accept();
        }}
      >
        <img src="/console/icon.svg" alt="" width="40" height="40" />
        <h1>{texts.signIn.heading}</h1>
        <p>{texts.signIn.link(holderOf(token).project)}</p>
        {present.value && <p>{texts.signIn.replaced(holder.value.project)}</p>}
        {error !== null && <Problem error={error} />}
        <Button
          type="submit"
          look="main"
          label={isBusy && error === null ? texts.signIn.busy : texts.signIn.submit}
          disabled={isBusy}
        />
        <Button label={present.value ? texts.signIn.stay : texts.signIn.refuse} onClick={() => (link.value = null)} />
      </form>
    </main>
  );
}
