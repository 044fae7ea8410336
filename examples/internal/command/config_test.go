// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/catalog"
	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/subscription"
)

// inGoOnly are the fields of Options that no file can set, each with the reason.
var inGoOnly = map[string]string{
	"Catalog.GlobalCatalogNamespace": "the controllers set it from GlobalNamespace",
	"InstallPlan.GlobalNamespace":    "the controllers set it from GlobalNamespace",
	"KubernetesVersion":              "the commands ask the API server, or take it from a flag where there is none",
	"Resolve":                        "a function; --catalog and --registries set it",
	"Fingerprint":                    "a function; --catalog and --registries set it",
	"CatalogsOf":                     "a function; --catalog and --registries set it",
	"Judge":                          "a function; --judge sets it",
	"Issuer":                         "an interface",
	"Connection":                     "a function; --registries sets it",
	"Watch":                          "a function; --registries sets it",
	"Live":                           "a fact about the Reader of a command",
	"Asked":                          "a function",
}

// option is a field of Options, and of the Configs in it.
type option struct {
	goPath, path string
	index        []int
	field        reflect.StructField
}

const module = "github.com/olmcore/olm/"

// optionsOf returns all options of a struct; path is where a file has the struct.
func optionsOf(t reflect.Type, goPath, path string, index []int) (all []option) {
	for _, field := range reflect.VisibleFields(t) {
		o := option{
			goPath: strings.TrimPrefix(goPath+"."+field.Name, "."), path: strings.TrimPrefix(path+"."+keyOf(field), "."),
			index: append(append([]int(nil), index...), field.Index...), field: field,
		}
		isConfig := field.Type.Kind() == reflect.Struct && strings.HasPrefix(field.Type.PkgPath(), module)
		if _, excluded := inGoOnly[o.goPath]; isConfig && !excluded {
			all = append(all, optionsOf(field.Type, o.goPath, o.path, o.index)...)
		} else {
			all = append(all, o)
		}
	}
	return all
}

func allOptions() []option { return optionsOf(reflect.TypeFor[controllers.Options](), "", "", nil) }

// samples are values of each type that an option has, as a file has them and as Go has them.
var samples = map[reflect.Type]struct {
	text  string
	value any
}{
	reflect.TypeFor[bool]():                      {"true", true},
	reflect.TypeFor[string]():                    {"sample", "sample"},
	reflect.TypeFor[int]():                       {"3", 3},
	reflect.TypeFor[int32]():                     {"4", int32(4)},
	reflect.TypeFor[int64]():                     {"5", int64(5)},
	reflect.TypeFor[time.Duration]():             {"1h30m", 90 * time.Minute},
	reflect.TypeFor[*time.Duration]():            {"0s", new(time.Duration)},
	reflect.TypeFor[[]string]():                  {"[a, b]", []string{"a", "b"}},
	reflect.TypeFor[catalog.Spread]():            {"\"Off\"", catalog.SpreadOff},
	reflect.TypeFor[catalog.ForceDeletePolicy](): {"Upstream", catalog.ForceDeleteUpstream},
	reflect.TypeFor[[]schema.GroupVersionKind](): {
		"[{group: example.com, version: v1, kind: Widget}, {version: v1, kind: Core}]",
		[]schema.GroupVersionKind{{Group: "example.com", Version: "v1", Kind: "Widget"}, {Version: "v1", Kind: "Core"}},
	},
	reflect.TypeFor[[]corev1.EnvVar](): {
		"[{name: NO_PROXY, value: .svc}, {name: A, valueFrom: {configMapKeyRef: {name: proxy, key: a, optional: true}}}]",
		[]corev1.EnvVar{
			{Name: "NO_PROXY", Value: ".svc"},
			{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "proxy"}, Key: "a", Optional: new(true),
			}}},
		},
	},
	reflect.TypeFor[*corev1.ResourceRequirements](): {
		"{requests: {cpu: 0.5, memory: 1Gi}, limits: {example.com/gpu: 2}, claims: [{name: c, request: r}]}",
		&corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1Gi")},
			Limits:   corev1.ResourceList{"example.com/gpu": resource.MustParse("2")},
			Claims:   []corev1.ResourceClaim{{Name: "c", Request: "r"}},
		},
	},
}

// TestAFileCanSetEveryOption sets each field of Options and of its Configs alone, and compares all Options. A new field
// needs a tag, or a row in inGoOnly.
func TestAFileCanSetEveryOption(t *testing.T) {
	key := regexp.MustCompile(`^[a-z][A-Za-z]*$`)
	found := map[string]bool{}
	for _, o := range allOptions() {
		found[o.goPath] = true
		tag, _, _ := strings.Cut(o.field.Tag.Get("json"), ",")
		if _, excluded := inGoOnly[o.goPath]; excluded {
			require.Equal(t, "-", tag, o.goPath)
			continue
		}
		require.Regexp(t, key, tag, "%s needs a JSON tag in lowerCamelCase, or a row in inGoOnly", o.goPath)
		sample, known := samples[o.field.Type]
		require.True(t, known, "%s: there is no sample of type %s", o.goPath, o.field.Type)
		var got, want controllers.Options
		require.NoError(t, decodeConfig("config.yaml", []byte(lineFor(o.path, sample.text)), &got))
		reflect.ValueOf(&want).Elem().FieldByIndex(o.index).Set(reflect.ValueOf(sample.value))
		require.Empty(t, cmp.Diff(want, got), o.path)
	}
	for path := range inGoOnly {
		require.True(t, found[path], "%s is no field any more", path)
	}
}

// TestAFileCanAllowNoPackageServer checks that an empty list is another value than none.
func TestAFileCanAllowNoPackageServer(t *testing.T) {
	for text, want := range map[string][]string{
		"csv: {packageServerNamespaces: []}":   {},
		"csv: {packageServerNamespaces: [ns]}": {"ns", "market", "olm"},
		"csv: {packageServerNamespaces: null}": {"market", "olm"},
		"csv: {installTimeout: 1s}":            {"market", "olm"},
	} {
		t.Run(text, func(t *testing.T) {
			o := controllers.Options{GlobalNamespace: "market"}
			require.NoError(t, decodeConfig("config.yaml", []byte(text), &o))
			require.Equal(t, want, o.CSVConfig().PackageServerNamespaces)
		})
	}
}

// lineFor returns a file that sets the option at a path.
func lineFor(path, text string) string {
	keys := strings.Split(path, ".")
	return "{" + strings.Join(keys, ": {") + ": " + text + strings.Repeat("}", len(keys)) + "\n"
}

func TestAFileThatCannotBeUsedIsRefusedWithItsPath(t *testing.T) {
	const noString = ` is not a string; numbers, and words such as Off, On, Yes and No, need quotes in YAML: "Off"`
	const noDuration = " is not a duration such as 30s or 1h30m"
	const known = " There are catalog, copies, csv, globalNamespace, ignoreImageTemplates, installPlan, " +
		"namespaces, operators, subscription, sweeps"
	noNamespace := ", which is no name of a namespace: " + oneLine(validation.IsDNS1123Label("")[0])
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown field": {"replicas: 3", "replicas: is not known." + known},
		"a misspelt field": {"catalog: {replicsa: 3}", `catalog.replicsa: is not known: did you mean "replicas"?`},
		"the name in Go": {
			"installPlan: {OverwriteUnmanaged: true}",
			`installPlan.OverwriteUnmanaged: is not known: did you mean "overwriteUnmanaged"?`,
		},
		"a field of Go alone": {"resolve: x", "resolve: is not known." + known},
		"an unknown field of a list": {
			"csv: {cleanup: {clusterKinds: [{version: v1, kind: A}, {knd: B}]}}",
			`csv.cleanup.clusterKinds[1].knd: is not known: did you mean "kind"?`,
		},
		"an odd key":             {`"a b\n": 1`, `"a b\n": is not known.` + known},
		"an empty key":           {`"": 1`, `"": is not known.` + known},
		"a key twice":            {"sweeps: true\ncatalog:\n  replicas: 1\n  replicas: 2\n", "catalog.replicas: is there twice"},
		"a key twice in JSON":    {`{"catalog": {"replicas": 1, "replicas": 2}}`, "catalog.replicas: is there twice"},
		"two keys of one text":   {"1: a\n'1': b\n", `key "1" is there twice`},
		"a number for a string":  {"globalNamespace: 7", "globalNamespace:" + noString},
		"Off without quotes":     {"catalog: {spread: Off}", "catalog.spread:" + noString},
		"a string for a boolean": {"sweeps: 'true'", "sweeps: is not true or false"},
		"a string for a number":  {"catalog: {replicas: '3'}", "catalog.replicas: is not a whole number"},
		"a fraction":             {"catalog: {replicas: 1.5}", "catalog.replicas: is not a whole number"},
		"a number out of range": {
			"catalog: {startupFailureThreshold: 2147483648}",
			"catalog.startupFailureThreshold: is a number that is out of range",
		},
		"a number beyond all ranges": {
			"installPlan: {maxStatusBytes: 99999999999999999999}",
			"installPlan.maxStatusBytes: is not a whole number",
		},
		"a negative number": {"installPlan: {maxInstallPlans: -1}", "installPlan.maxInstallPlans: is negative"},
		"too many replicas": {"catalog: {replicas: 6}", "catalog.replicas: is not between 1 and 5"},
		"a user that is none": {
			"catalog: {workloadUserID: -2}",
			"catalog.workloadUserID: is negative and not NoWorkloadUser (-1)",
		},
		"a duration without unit":     {"catalog: {nodeUnreachableGrace: 30}", "catalog.nodeUnreachableGrace:" + noDuration},
		"a duration of words":         {"subscription: {missingGrace: soon}", "subscription.missingGrace:" + noDuration},
		"an endless duration":         {"csv: {installTimeout: 9999999999h}", "csv.installTimeout:" + noDuration},
		"a negative duration":         {"subscription: {missingGrace: -1s}", "subscription.missingGrace: is negative"},
		"a negative duration inside":  {"csv: {cleanup: {operandTimeout: -1s}}", "csv.cleanup.operandTimeout: is negative"},
		"a negative duration or none": {"installPlan: {unpackTimeout: -1s}", "installPlan.unpackTimeout: is negative"},
		"an unknown choice":           {"catalog: {spread: thin}", "catalog.spread: is not one of Off, Prefer, Require"},
		"another unknown choice": {
			"catalog: {forceDelete: always}",
			"catalog.forceDelete: is not one of Never, NodeGoneOnly, NodeLost, Upstream",
		},
		"a quantity that is none":      {"catalog: {resources: {requests: {cpu: much}}}", "catalog.resources.requests.cpu: is not a quantity"},
		"a quantity that is a mapping": {"catalog: {resources: {limits: {cpu: {}}}}", "catalog.resources.limits.cpu: is not a quantity"},
		"a negative quantity":          {"catalog: {resources: {limits: {cpu: -1}}}", "catalog.resources.limits.cpu: is negative"},
		"a quantity beyond reason": {
			"catalog: {resources: {limits: {cpu: '1e-100000000'}}}",
			"catalog.resources.limits.cpu: is not a quantity",
		},
		"a resource without a value":  {"catalog: {resources: {limits: {cpu: }}}", "catalog.resources.limits.cpu: has no value"},
		"a variable without a name":   {"csv: {proxyEnv: [{value: x}]}", "csv.proxyEnv[0].name: is no name of an environment variable"},
		"a kind without a version":    {"csv: {cleanup: {clusterKinds: [{kind: A}]}}", "csv.cleanup.clusterKinds[0]: has no version or no kind"},
		"a namespace that is none":    {"namespaces: [a, Ops]", `namespaces[1]: is "Ops"` + noNamespace},
		"another namespace":           {"copies: {protectedNamespaces: ['*']}", `copies.protectedNamespaces[0]: is "*"` + noNamespace},
		"a namespace without a value": {"namespaces: [a, ]\n---\nnamespaces:\n-\n", "has more than one document"},
		"an element without a value":  {"namespaces:\n-\n", "namespaces[0]: has no value"},
		"a string for a list":         {"namespaces: a", "namespaces: is not a list"},
		"a list for a Config":         {"catalog: [a]", "catalog: is not a mapping"},
		"a string for a map":          {"catalog: {resources: {requests: a}}", "catalog.resources.requests: is not a mapping"},
		"a list":                      {"- catalog", "is not a mapping"},
		"a word":                      {"catalog", "is not a mapping"},
		"several documents":           {"sweeps: false\n---\noperators: false\n", "has more than one document"},
		"several documents of JSON":   {"{\"sweeps\": false}\n{\"operators\": false}\n", "has more than one document"},
		"no YAML":                     {"catalog: [", "yaml: line 1: did not find expected node content"},
		"a tab":                       {"catalog:\n\treplicas: 1\n", "yaml: line 2: found character that cannot start any token"},
		"half a JSON":                 {`{"catalog": `, "unexpected EOF"},
		"no UTF-8":                    {"globalNamespace: \xff\xfe", "is not UTF-8 text"},
		"UTF-16":                      {"\xff\xfes\x00", "is not UTF-8 text"},
		"a NUL":                       {"globalNamespace: \x00", "yaml: control characters are not allowed"},
		"an alias bomb":               {aliasBomb(9), "yaml: document contains excessive aliasing"},
		"long text in aliases": {
			"a: &a " + strings.Repeat("x", 10_000) + "\nb: [*a" + strings.Repeat(", *a", 50) + "]\n",
			"its aliases make it too large",
		},
		"an alias of itself": {"namespaces: &a [*a]", "yaml: anchor 'a' value contains itself"},
		"a large file":       {"# " + strings.Repeat("x", maxConfig), "is larger than 1048576 bytes"},
		"a ConfigMap": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: olm}\ndata:\n  config.yaml: |\n    sweeps: false\n",
			"is a Kubernetes object of kind ConfigMap, not a configuration file; of a ConfigMap, mount the key that has the file",
		},
		"several mistakes": {
			"sweep: true\ncatalog: {replicas: many, spread: 1}\n",
			"catalog.replicas: is not a whole number\nconfig.yaml: catalog.spread:" + noString +
				"\nconfig.yaml: sweep: is not known: did you mean \"sweeps\"?",
		},
		"several values that are invalid": {
			"catalog: {replicas: 7}\ninstallPlan: {runAsUser: -1}\n",
			"catalog.replicas: is not between 1 and 5\nconfig.yaml: installPlan.runAsUser: is negative",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := decodeConfig("config.yaml", []byte(tt.text), &controllers.Options{})
			require.EqualError(t, err, "config.yaml: "+tt.want)
		})
	}
}

// aliasBomb returns YAML whose aliases make it ten times as large with each level.
func aliasBomb(levels int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range levels {
		name := fmt.Sprintf("*a%d, ", i)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(name, 10), ", "))
	}
	return text
}

func TestAFileThatSetsNothingIsAllowed(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "comments": "# nothing\n\n# yet\n", "null": "null\n",
		"an empty mapping": "{}", "dashes": "---\n---\n", "a byte order mark": "\ufeff",
		"keys without values": "catalog:\n# replicas: 3\ninstallPlan: {unpackTimeout: }\nnamespaces: ~\n",
	} {
		t.Run(name, func(t *testing.T) {
			defaults := controllers.Options{Sweeps: true, GlobalNamespace: "olm"}
			require.NoError(t, decodeConfig("config.yaml", []byte(text), &defaults))
			require.Empty(t, cmp.Diff(controllers.Options{Sweeps: true, GlobalNamespace: "olm"}, defaults))
		})
	}
}

func TestFilesOfOtherFormsAreRead(t *testing.T) {
	want := controllers.Options{Namespaces: []string{"a", "a"}, Catalog: catalog.Config{Replicas: 2}}
	for name, text := range map[string]string{
		"YAML": "namespaces:\n- &n a\n- *n\ncatalog:\n  replicas: 2\n", "JSON": `{"namespaces": ["a", "a"], "catalog": {"replicas": 2}}`,
		"a document with dashes": "---\nnamespaces: [a, a]\ncatalog: {replicas: 2}\n---\n",
		"carriage returns":       "namespaces: [a, a]\r\ncatalog:\r\n  replicas: 2\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			var got controllers.Options
			require.NoError(t, decodeConfig("config.yaml", []byte(text), &got))
			require.Empty(t, cmp.Diff(want, got))
		})
	}
	none := controllers.Options{InstallPlan: installplan.Config{SupportedKinds: []string{"A"}}}
	require.NoError(t, decodeConfig("config.yaml", []byte("installPlan: {supportedKinds: []}"), &none))
	require.Empty(t, cmp.Diff([]string{}, none.InstallPlan.SupportedKinds), "an empty list is not the default")
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	require.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("#"), maxConfig+1), 0o600))
	for name, tt := range map[string]struct{ file, want string }{
		"missing":   {filepath.Join(dir, "none"), filepath.Join(dir, "none") + ": no such file or directory"},
		"a folder":  {dir, dir + ": is a directory"},
		"a large":   {large, large + ": is larger than 1048576 bytes"},
		"without a": {"", "--config: names no file"},
	} {
		t.Run(name, func(t *testing.T) {
			require.EqualError(t, New().Parse([]string{"--only=catalog", "--config", tt.file}, nil), tt.want)
		})
	}
}

// TestAWrongFileIsReportedAfterTheFlags checks that --version and --help work with a file that is wrong, and that a
// wrong flag is reported first.
func TestAWrongFileIsReportedAfterTheFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"none: no such file or directory":   {"--config", "none"},
		"flag needs an argument: -config":   {"--config"},
		"flag provided but not defined: -x": {"--config", "none", "--x"},
		"invalid boolean value":             {"--config", "none", "--sweeps=x"},
		`the argument "x" is not known`:     {"x", "--config", "none"},
	} {
		require.ErrorContains(t, New().Parse(args, nil), want)
	}
	var out bytes.Buffer
	require.ErrorIs(t, New().Parse([]string{"--config", "none", "--version"}, &out), errDone)
	require.ErrorIs(t, New().Parse([]string{"--config", "none", "--help"}, &out), errDone)
	require.Contains(t, out.String(), "-config FILE")
}

// shared are the flags that set a field of Options: arguments, and what the flag changes in the Options that fromFile
// returns.
var shared = map[string]struct {
	args   string
	change func(*controllers.Options)
}{
	"namespaces":               {"--namespaces=", func(o *controllers.Options) { o.Namespaces = nil }},
	"global-catalog-namespace": {"--global-catalog-namespace=olm", func(o *controllers.Options) { o.GlobalNamespace = "olm" }},
	"node-unreachable-grace": {
		"--node-unreachable-grace=30s",
		func(o *controllers.Options) { o.Catalog.NodeUnreachableGrace = 30 * time.Second },
	},
	"node-not-ready-grace": {"--node-not-ready-grace 1m", func(o *controllers.Options) { o.Catalog.NodeNotReadyGrace = time.Minute }},
	"catalog-replicas":     {"--catalog-replicas 1", func(o *controllers.Options) { o.Catalog.Replicas = 1 }},
	"opm-image":            {"--opm-image=", func(o *controllers.Options) { o.InstallPlan.OPMImage = "" }},
	"util-image":           {"--util-image other", func(o *controllers.Options) { o.InstallPlan.UtilImage = "other" }},
	"sweeps":               {"--sweeps", func(o *controllers.Options) { o.Sweeps = true }},
	"sweep-delete":         {"--sweep-delete=false", func(o *controllers.Options) { o.CSV.Cleanup.SweepDelete = false }},
	"operators":            {"--operators=true", func(o *controllers.Options) { o.Operators = true }},
}

// notInFile are the other flags.
var notInFile = []string{"only", "ignore-checks", "version", "config", "catalog", "judge"}

// everyFlag sets what the shared flags set to something else than their defaults.
const everyFlag = `
namespaces: [a]
globalNamespace: global
sweeps: false
operators: false
catalog: {replicas: 3, nodeUnreachableGrace: 1s, nodeNotReadyGrace: 2s}
installPlan: {opmImage: opm, utilImage: util}
csv: {cleanup: {sweepDelete: true}}
`

func fromFile() controllers.Options {
	o := controllers.Options{Namespaces: []string{"a"}, GlobalNamespace: "global"}
	o.Catalog = catalog.Config{Replicas: 3, NodeUnreachableGrace: time.Second, NodeNotReadyGrace: 2 * time.Second}
	o.InstallPlan = installplan.Config{OPMImage: "opm", UtilImage: "util"}
	o.CSV.Cleanup.SweepDelete = true
	return o
}

// TestAFlagThatIsGivenHasPriorityOverTheFile gives each flag alone, before and after --config, with its default as the
// value where it has one.
func TestAFlagThatIsGivenHasPriorityOverTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(everyFlag), 0o600))
	parsed := func(args ...string) controllers.Options {
		f := New()
		require.NoError(t, f.Parse(args, nil), args)
		return f.Options
	}
	require.Empty(t, cmp.Diff(fromFile(), parsed("--config", file)), "no flag is given")
	twice := parsed("--config=none", "--judge=false", "--only", "csv", "-config", file)
	require.Empty(t, cmp.Diff(fromFile(), twice), "the last --config counts")
	New().VisitAll(func(f *flag.Flag) {
		tt, known := shared[f.Name]
		require.NotEqual(t, known, strings.Contains(" "+strings.Join(notInFile, " ")+" ", " "+f.Name+" "), "--%s needs a row", f.Name)
		if !known {
			return
		}
		want := fromFile()
		tt.change(&want)
		args := strings.Fields(tt.args)
		require.Empty(t, cmp.Diff(want, parsed(append(args, "--config", file)...)), tt.args)
		require.Empty(t, cmp.Diff(want, parsed(append([]string{"--config", file}, args...)...)), tt.args)
	})
}

// TestWhatAFileSetsCountsForOtherFlags checks that --only knows which controllers the file switches off.
func TestWhatAFileSetsCountsForOtherFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("sweeps: false\n"), 0o600))
	require.EqualError(t, New().Parse([]string{"--only=sweep", "--config", file}, nil), `--only: "sweep" is switched off: set Sweeps`)
	require.NoError(t, New().Parse([]string{"--only=sweep", "--config", file, "--sweeps"}, nil))
}

// TestTheDocumentedFileHasEveryOption reads the example in docs/running.md: it has each option that a file can set,
// with its default.
func TestTheDocumentedFileHasEveryOption(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "running.md"))
	require.NoError(t, err)
	match := regexp.MustCompile("(?s)<!-- every option: .*? -->\n```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, match)
	var example map[string]any
	require.NoError(t, yaml.Unmarshal(match[1], &example))
	for _, o := range allOptions() {
		if _, excluded := inGoOnly[o.goPath]; excluded {
			continue
		}
		var value any = example
		for key := range strings.SplitSeq(o.path, ".") {
			mapping, _ := value.(map[string]any)
			value = mapping[key]
		}
		require.NotNil(t, value, "the example lacks %s", o.path)
	}
	got := New().Options
	require.NoError(t, decodeConfig("docs/running.md", match[1], &got))
	require.Equal(t, installplan.Config{}.StepKinds(), got.InstallPlan.StepKinds())
	got.InstallPlan.SupportedKinds = nil
	require.Empty(t, cmp.Diff(documented(), got))
}

// documented returns the default of each option.
func documented() controllers.Options {
	o := controllers.Options{Namespaces: []string{}, GlobalNamespace: controllers.DefaultGlobalNamespace, Sweeps: true, Operators: true}
	requests := corev1.ResourceList{"cpu": resource.MustParse("10m"), "memory": resource.MustParse("50Mi")}
	o.Catalog = catalog.Config{
		Replicas: catalog.DefaultReplicas, Spread: catalog.SpreadPrefer, ForceDelete: catalog.ForceDeleteNodeLost,
		Resources:            &corev1.ResourceRequirements{Requests: requests},
		NodeUnreachableGrace: catalog.DefaultNodeUnreachableGrace, NodeNotReadyGrace: catalog.DefaultNodeNotReadyGrace,
		NodeGoneGrace: catalog.DefaultNodeGoneGrace, MinPollInterval: catalog.DefaultMinPollInterval,
		OPMImage: catalog.DefaultOPMImage, UtilImage: catalog.DefaultUtilImage, ConfigMapServerImage: catalog.DefaultConfigMapServerImage,
		WorkloadUserID: catalog.DefaultWorkloadUserID, StartupFailureThreshold: catalog.DefaultStartupFailureThreshold,
	}
	o.Subscription = subscription.Config{MissingGrace: subscription.DefaultMissingGrace}
	o.InstallPlan = installplan.Config{
		InstallTimeout: installplan.DefaultInstallTimeout, OLMNamespace: installplan.DefaultOLMNamespace,
		MaxStatusBytes: installplan.DefaultMaxStatusBytes, MaxInstallPlans: installplan.DefaultMaxInstallPlans,
		UnpackTimeout: new(time.Duration(installplan.DefaultUnpackTimeout)),
	}
	o.CSV = csv.Config{
		InstallTimeout: csv.DefaultInstallTimeout, ExcludedAnnotations: []string{}, ProxyEnv: []corev1.EnvVar{},
		PackageServerNamespaces: []string{csv.DefaultPackageServerNamespace},
	}
	o.CSV.Cleanup.ClusterKinds = []schema.GroupVersionKind{}
	o.Copies.ProtectedNamespaces = []string{}
	return o
}

// FuzzConfig checks that each text is read or refused with lines that name the file, and read the same way twice.
func FuzzConfig(f *testing.F) {
	for _, sample := range samples {
		f.Add([]byte(lineFor("catalog.resources", sample.text)))
	}
	for _, text := range []string{
		everyFlag, aliasBomb(3), "{\"a\": 1}", "--- a\n...\n--- b", "<<: {sweeps: true}",
		"catalog: {resources: {requests: {cpu: '1e-9', x: 0x1}}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second controllers.Options
		err := decodeConfig("file", text, &first)
		again := decodeConfig("file", text, &second)
		if err == nil {
			require.NoError(t, again)
			require.NoError(t, first.Validate())
			require.Empty(t, cmp.Diff(first, second))
			return
		}
		require.EqualError(t, again, err.Error())
		for line := range strings.SplitSeq(err.Error(), "\n") {
			require.True(t, strings.HasPrefix(line, "file: "), line)
		}
	})
}
