"""A program in a terminal, answered as a person would."""
import os, pty, re, select, time


def typed(program, args, steps, cwd, env, timeout):
    """Types the answer of each step when its text appears, and returns everything that was shown."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execve(program, [str(program), *args], env)
    out, step, mark, end, heard = "", 0, 0, time.time() + timeout, time.time()
    while time.time() < end:
        if step < len(steps) and time.time() - heard > 3 and re.search(r"[:?\]] ?$", out):  # another question: its default
            heard = time.time()
            os.write(fd, b"\n")
        if select.select([fd], [], [], 0.2)[0]:
            heard = time.time()
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            out += data.decode("utf8", "replace")
        if step < len(steps) and steps[step][0] in out[mark:]:
            mark = len(out)
            time.sleep(0.1)
            os.write(fd, (steps[step][1] + "\n").encode())
            step += 1
    os.close(fd)
    try:
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, 15)
            os.waitpid(pid, 0)
    except ChildProcessError:
        pass
    return out.replace("\r", "")
