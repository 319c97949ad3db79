// Words of a script that delete, send, start or stop. They are marked where nobody can tell what a script does; a script without
// one may do all of that too.

const DELETES = "rm rmdir unlink shred truncate wipe wipefs mkfs dd delete drop destroy purge prune uninstall";
const SENDS = "curl wget scp sftp ftp rsync ssh nc ncat socat telnet mail sendmail push publish upload send deploy";
const STARTS =
  "start restart exec eval source sudo su doas nohup daemon systemctl service launchctl crontab docker podman kubectl";
const STOPS = "stop kill killall pkill shutdown reboot halt poweroff disable";

const WORDS = [DELETES, SENDS, STARTS, STOPS].join(" ").split(" ");
const ACT = new RegExp(String.raw`(?<![\w.-])(${WORDS.join("|")})(?![\w-])`, "gi");

/** A piece of a line, and whether it is such a word. */
export interface ActPiece {
  readonly text: string;
  readonly isAct: boolean;
}

/** The pieces of a line, which together are the line. */
export function actPieces(text: string): ActPiece[] {
  const pieces = text.split(ACT).map((piece, at) => ({ text: piece, isAct: at % 2 === 1 }));
  return pieces.filter((piece) => piece.text !== "");
}
