# Runs within a bare system that has gpumem's wheel in /given, and estimate.txt, what the Debian package says.
#   try_wheel.sh VERSION
version=$1
cd /given
fail() { echo "try_wheel.sh: $*" >&2; exit 1; }

if ! command -v python3 > /dev/null; then
  apt-get update -q > apt.log 2>&1 || { cat apt.log >&2; exit 1; }
  apt-get install -y -q --no-install-recommends python3 python3-venv > apt.log 2>&1 || { cat apt.log >&2; exit 1; }
fi
python3 -m venv /venv
/venv/bin/pip install -q --no-index ./gpumem-"$version"-py3-none-*.whl

for gpumem in "/venv/bin/python3 -m gpumem" /venv/bin/gpumem; do
  [ "$($gpumem --version)" = "gpumem $version" ] || fail "$gpumem --version: $($gpumem --version)"
  $gpumem estimate resnet50.torchsummary.txt --batch 32 --gpu a100-40gb > own.txt
  diff estimate.txt own.txt
  code=0
  $gpumem estimate no-such-file --batch 1 > /dev/null 2>&1 || code=$?
  [ "$code" -eq 3 ] || fail "$gpumem estimate no-such-file ends with $code"
done
/venv/bin/gpumem estimate --trainer trainers/axolotl.yaml --gpu a100-40gb > /dev/null
/venv/bin/python3 try_python.py "$version" resnet50.torchsummary.txt estimate.txt
package=$(/venv/bin/python3 -c 'import gpumem; print(gpumem.__path__[0])')
for file in py.typed libgpumem_c.so; do
  [ -e "$package/$file" ] || fail "$file is not in the wheel"
done
[ -n "$(find "$package"/../gpumem-*.dist-info -name NOTICE)" ] || fail "the licences of what is linked in are not in the wheel"
/venv/bin/pip uninstall -q -y gpumem
[ ! -e "$package" ] || fail "left behind: $(find "$package" | head)"
echo "the wheel works with $(python3 --version): $(ls ./*.whl)"
