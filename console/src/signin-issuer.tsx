// Signing in by an issuer of the project, so that nobody needs a key: choose it, come back from it, sign in again.
import { isSelkieError } from "@selkie/client";
import { useEffect, useState } from "preact/hooks";
import { answer, begin, claimsOf, finish, issuers } from "./oidc";
import { clientOf, holder, isTesting, signInAs } from "./session";
import { texts } from "./texts";
import { Button, Problem, Spinner, useAttempt, useLoad, useTitle } from "./ui";

const words = texts.signIn;
/** How often is looked whether the token has ended. */
const END_CHECK_MS = 2_000;

export function IssuerButtons() {
  const { value: list = [] } = useLoad(issuers, []);
  const [error, attempt] = useAttempt();
  if (list.length === 0) return null;
  return (
    <>
      <p>{words.by}</p>
      {list.map((issuer) => (
        <Button
          key={`${issuer.project} ${issuer.issuer}`}
          icon="lock"
          label={words.with(new URL(issuer.issuer).host, issuer.project)}
          onClick={() => void attempt(() => begin(issuer))}
        />
      ))}
      {error !== null && <Problem error={error} />}
    </>
  );
}

/** Signs in the user whom an issuer has sent back. */
export function IssuerSignIn({ options }: { options: URLSearchParams }) {
  const [error, attempt] = useAttempt();
  useTitle(words.heading);
  useEffect(() => {
    void attempt(async () => {
      const { issuer, token } = await finish(options);
      const access = await accessOf(token);
      signInAs(token, { access, project: issuer.project, name: nameOf(token), issuer });
      answer.value = null;
    });
  }, []);
  return (
    <main class="signin" id="content">
      <form onSubmit={(event) => event.preventDefault()}>
        <img src="/console/icon.svg" alt="" width="40" height="40" />
        <h1>{words.heading}</h1>
        {error === null ? <Spinner label={words.returning} /> : <Problem error={error} />}
        {error !== null && <Button label={words.back} onClick={() => (answer.value = null)} />}
      </form>
    </main>
  );
}

/** Asks the service what the token may do, since the token does not say it. */
async function accessOf(token: string): Promise<"full" | "read" | "role"> {
  try {
    await clientOf(token).request("GET", "keys?limit=1");
    return "full";
  } catch (refused) {
    if (isSelkieError(refused) && refused.code === "full_access_required") return "read";
    if (!isSelkieError(refused) || refused.code !== "role_forbids") throw refused;
    // A token without a role is refused here too, and with a better reason.
    await clientOf(token).request("GET", "crud");
    return "role";
  }
}

function nameOf(token: string): string {
  const { name, email, sub } = claimsOf(token) ?? {};
  return String(name ?? email ?? sub ?? "");
}

/** Offers to sign in again when the user's token has ended. */
export function Again() {
  const { issuer, endsAt } = holder.value;
  const [isOver, setOver] = useState(false);
  const [error, attempt] = useAttempt();
  useEffect(() => {
    setOver(false);
    if (!issuer || !endsAt || isTesting()) return;
    const timer = setInterval(() => setOver(Date.now() >= endsAt * 1000), END_CHECK_MS);
    return () => clearInterval(timer);
  }, [issuer, endsAt]);
  if (!isOver || !issuer) return null;
  return (
    <span role="alert" class="row" title={words.ended}>
      <Button icon="lock" look="main" label={words.again} onClick={() => void attempt(() => begin(issuer))} />
      {error !== null && <Problem error={error} />}
    </span>
  );
}
