# Runs within a bare system that has gpumem's Debian packages in /given.
#   try_debs.sh VERSION
version=$1
cd /given
fail() { echo "try_debs.sh: $*" >&2; exit 1; }

apt-get update -q > apt.log 2>&1 || { cat apt.log >&2; exit 1; }
# Together, so that apt takes each package's dependencies among them from this folder.
apt-get install -y -q --no-install-recommends ./*.deb gcc libc6-dev pkg-config > apt.log 2>&1 || { cat apt.log >&2; exit 1; }

[ "$(gpumem --version)" = "gpumem $version" ] || fail "gpumem --version: $(gpumem --version)"
gpumem estimate /usr/share/gpumem/models/summaries/resnet50.torchsummary.txt --batch 32 --gpu a100-40gb > estimate.txt
grep -q '^replay .* yes$' estimate.txt || fail "the estimate: $(cat estimate.txt)"
# What the wheel's program is given has another path.
sed -i '1s/.*resnet50/resnet50/' estimate.txt
gpumem estimate --trainer trainers/axolotl.yaml --gpu a100-40gb > /dev/null
for page in gpumem gpumem-jobs gpumem-webhook; do
  [ -s "/usr/share/man/man1/$page.1.gz" ] || fail "there is no man page of $page"
done
for file in bash-completion/completions/gpumem zsh/vendor-completions/_gpumem fish/vendor_completions.d/gpumem.fish \
  man/man1/gpumem-estimate.1.gz; do
  [ -s "/usr/share/$file" ] || fail "there is no /usr/share/$file"
done

scripts=$(find /usr/share/doc/gpumem -name '*.py' -o -name reference)
[ -z "$scripts" ] || fail "no pages: $scripts"

# A program in C against libgpumem-dev; the library that it loads is libgpumem0's.
gcc -std=c99 -Wall -Werror c/admission.c -o admission $(pkg-config --cflags --libs gpumem-c)
./admission resnet50.torchsummary.txt > admission.out
diff c/admission.out admission.out
ldd admission > ldd.out
grep -q 'libgpumem_c.so.0 => /lib/\|libgpumem_c.so.0 => /usr/lib/' ldd.out || fail "$(cat ldd.out)"
[ "$(pkg-config --modversion gpumem)" = "$version" ] || fail "pkg-config says another version"

[ -e /usr/lib/"$(gcc -dumpmachine)"/slurm-wlm/spank_gpumem.so ] || fail "Slurm has no plugin of gpumem"
named=$(zcat -f /usr/share/doc/gpumem-slurm/README.md* | grep -o '/usr/[a-z0-9_./-]*gpumem[a-z0-9_./-]*\.\(so\|lua\)')
for file in $named; do
  [ -e "$file" ] || fail "gpumem-slurm's README.md names $file, which is not there"
done
python3 try_python.py "$version" resnet50.torchsummary.txt
[ "$(python3 -m gpumem --version)" = "gpumem $version" ] || fail "python3 -m gpumem --version"

gpumem-webhook --port 8080 --host 127.0.0.1 --summaries /given > webhook.log &
webhook=$!
python3 - << 'END'
import json, time, urllib.request
for wait in range(100):
    try:
        urllib.request.urlopen("http://127.0.0.1:8080/healthz")
        break
    except OSError:
        time.sleep(0.1)
review = open("review.json", "rb").read()
request = urllib.request.Request("http://127.0.0.1:8080/mutate", review, {"Content-Type": "application/json"})
answer = json.load(urllib.request.urlopen(request))["response"]
assert answer["uid"] == json.loads(review)["request"]["uid"], answer
assert answer["allowed"] and answer["patchType"] == "JSONPatch" and answer["patch"], answer
END
kill "$webhook"
wait "$webhook" || fail "gpumem-webhook ended with $?"

apt-get purge -y -q '*gpumem*' > apt.log 2>&1 || { cat apt.log >&2; exit 1; }
left=$(find /usr /etc /lib/systemd /var/lib -xdev -name '*gpumem*' ! -path '/var/lib/apt/*' ! -path '/var/lib/dpkg/*' | head)
[ -z "$left" ] || fail "left behind: $left"
echo "the Debian packages work: $(ls ./*.deb | tr '\n' ' ')"
