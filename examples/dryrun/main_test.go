// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

var clock = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func runDry(t testing.TB, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs, clock)
	return code, out.String(), errs.String()
}

// TestOutput compares the table of each world in testdata, as it is and settled,
// with the file beside it. OLMCORE_UPDATE=1 rewrites the files.
func TestOutput(t *testing.T) {
	worlds, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.Len(t, worlds, 6)
	for _, world := range worlds {
		for suffix, args := range map[string][]string{"": {"--complete", world}, ".settled": {"--settle", world}} {
			code, got, errs := runDry(t, "", args...)
			require.Zero(t, code, errs)
			golden(t, strings.TrimSuffix(world, ".yaml")+suffix+".out", got)
		}
	}
}

// TestResolvesAgainstACatalog: one Subscription gets its operator and what that
// needs, one cannot be satisfied, and both are told why.
func TestResolvesAgainstACatalog(t *testing.T) {
	const dir = "testdata/resolve/"
	code, got, errs := runDry(t, "", "--complete", "--catalog", "olm/community="+dir+"catalog.yaml", "--explain", "backup.v1.0.0", dir+"subscriptions.yaml")
	require.Zero(t, code, errs)
	golden(t, dir+"subscriptions.out", got)

	code, again, errs := runDry(t, "", "--complete", "--catalog", "olm/community="+dir+"catalog", "--explain", "backup.v1.0.0", dir+"subscriptions.yaml")
	require.Zero(t, code, errs)
	require.Equal(t, got, again, "a folder is the same catalog")

	code, got, errs = runDry(t, "", "--complete", "--catalog", "olm/community="+dir+"catalog.yaml", "--explain", "mirror.v1.0.0", dir+"subscriptions.yaml")
	require.Zero(t, code, errs)
	_, mirror, _ := strings.Cut(got, "Subscription tools/mirror\n")
	require.True(t, strings.HasPrefix(mirror, "  updateStatus "), mirror)
	require.Contains(t, mirror, "  explained    Subscription mirror cannot be resolved: mirror.v1.0.0 needs", "also when the pass begins with a status write")

	for _, args := range [][]string{{"--path", "backup"}, {"--path", "tools/backup=backup.v1.0.0", "--output", "json"}} {
		args = append(args, "--complete", "--catalog", "olm/community="+dir+"catalog.yaml", dir+"subscriptions.yaml")
		code, got, errs := runDry(t, "", args...)
		require.Zero(t, code, errs)
		golden(t, dir+"path."+map[bool]string{true: "json", false: "out"}[slices.Contains(args, "json")], got)
	}
	code, _, errs = runDry(t, "", "--complete", "--catalog", "olm/community="+dir+"catalog.yaml", "--path", "nobody", dir+"subscriptions.yaml")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "dryrun: --path \"nobody\" names no Subscription of the input that is resolved\n", errs)

	for args, want := range map[string]string{
		"--path backup":           "dryrun: --path needs --catalog\n",
		"--catalog community=x":   `dryrun: invalid value "community=x" for flag -catalog: "community=x" is not NAMESPACE/NAME=PATH (--help lists the flags)` + "\n",
		"--catalog a/b=missing":   `dryrun: invalid value "a/b=missing" for flag -catalog: stat missing: no such file or directory (--help lists the flags)` + "\n",
		"--explain backup.v1.0.0": "dryrun: --explain needs --catalog\n",
		"--catalog /b=testdata":   `dryrun: invalid value "/b=testdata" for flag -catalog: "/b=testdata" is not NAMESPACE/NAME=PATH (--help lists the flags)` + "\n",
	} {
		code, _, errs := runDry(t, "", strings.Fields(args)...)
		require.Equal(t, exitUsage, code)
		require.Equal(t, want, errs)
	}
}

// TestResolvesAgainstAPublishedCatalog: the same of a catalog that is published.
func TestResolvesAgainstAPublishedCatalog(t *testing.T) {
	catalog := filepath.Join(realdata.Dir(t), "catalogs", "community-prod-ocp4.19.fbc.jsonl.gz")
	code, got, errs := runDry(t, "", "--complete", "--catalog", "olm/community-operators="+catalog, "testdata/resolve/published.yaml")
	require.Zero(t, code, errs)
	for _, line := range []string{
		"Catalog olm/community-operators: 319 packages, 537 channels, 5603 bundles",
		"  resolves     to kuadrant-operator.v0.11.1",
		"  installs     kuadrant-operator.v0.11.1 from channel stable of olm/community-operators",
		"  installs     authorino-operator.v0.13.0 from channel stable of olm/community-operators, for kuadrant-operator.v0.11.1",
		"  because      Subscription shipwright cannot be resolved: shipwright-operator.v0.15.2 needs an operator that provides TektonConfig (operator.tekton.dev/v1alpha1), and no catalog visible from namespace apps has one.",
		"  would help   Add a catalog that has an operator that provides TektonConfig (operator.tekton.dev/v1alpha1).",
		"  because      Subscription prometheus asks for package prometheus-operator, which catalog olm/community-operators does not have. Did you mean prometheus?",
	} {
		require.Contains(t, got, "\n"+line+"\n")
	}
	require.Equal(t, 6, strings.Count(got, "  installs     "), "each is shown where it belongs")
}

// TestABrokenCatalogIsReadAndSaysSo: what can be used of it is.
func TestABrokenCatalogIsReadAndSaysSo(t *testing.T) {
	text, err := os.ReadFile("testdata/resolve/catalog.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	broken := string(text) + "---\nschema: olm.bundle\n---\nschema: olm.channel\npackage: backup\nname: stable\n---\n\t:"
	require.NoError(t, os.WriteFile(file, []byte(broken), 0o600))
	code, got, errs := runDry(t, "", "--complete", "--catalog", "olm/community="+file, "testdata/resolve/subscriptions.yaml")
	require.Zero(t, code, errs)
	require.Contains(t, got, "Catalog olm/community: 3 packages, 4 channels, 4 bundles\n")
	require.Contains(t, got, "  problem      "+file+": document 11: package: is empty\n")
	require.Contains(t, got, "  problem      package backup, channel stable: a second channel \"stable\" is left out\n")
	require.Contains(t, got, "  resolves     to backup.v2.0.0\n")
}

// TestSettlesAlongTheChannel: with manifests in the catalog a dry run goes all the
// way, from the first version to the last, each once the one before is gone.
func TestSettlesAlongTheChannel(t *testing.T) {
	lines := []string{
		`{"schema":"olm.package","name":"a","defaultChannel":"s"}`,
		`{"schema":"olm.channel","package":"a","name":"s","entries":[{"name":"a.v1.0.0"},{"name":"a.v2.0.0","replaces":"a.v1.0.0"},{"name":"a.v3.0.0","replaces":"a.v2.0.0"}]}`,
	}
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		manifest := fmt.Sprintf(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v%s"},
			"spec":{"version":%q,"install":{"strategy":"deployment"},"installModes":[{"type":"AllNamespaces","supported":true}]}}`, version, version)
		lines = append(lines, fmt.Sprintf(`{"schema":"olm.bundle","package":"a","name":"a.v%s","properties":[{"type":"olm.package","value":{"packageName":"a","version":%q}},{"type":"olm.bundle.object","value":{"data":%q}}]}`,
			version, version, base64.StdEncoding.EncodeToString([]byte(manifest))))
	}
	file := filepath.Join(t.TempDir(), "catalog.json")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
	const world = `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: apps, namespace: apps}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: a, namespace: apps}
spec: {name: a, channel: s, source: c, sourceNamespace: olm, startingCSV: a.v1.0.0}
`
	code, got, errs := runDry(t, world, "--settle", "--catalog", "olm/c="+file)
	require.Zero(t, code, errs)
	for _, version := range []string{"1.0.0", "2.0.0", "3.0.0"} {
		require.Contains(t, got, "  create       ClusterServiceVersion apps/a.v"+version+" ")
	}
	require.Contains(t, got, "  resolves     to a.v3.0.0\n")
	require.NotContains(t, got, "not shown")
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("OLMCORE_UPDATE") == "1" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got), file)
}

func TestJSONHasTheDocumentedShape(t *testing.T) {
	_, out, _ := runDry(t, "", "--complete", "--output", "json", "testdata/subscription.yaml")
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "2026-01-01T12:00:00Z", got["now"])
	require.NotContains(t, got, "world")
	results := got["results"].([]any)
	require.Len(t, results, 5)
	sub := results[4].(map[string]any)
	require.Equal(t, "Subscription", sub["kind"])
	require.Equal(t, "etcd", sub["name"])
	for _, list := range []string{"actions", "transitions", "diagnostics", "requests"} {
		require.IsType(t, []any{}, sub[list], list)
	}
	require.Equal(t, "AtLatestKnown", sub["status"].(map[string]any)["state"])
	action := sub["actions"].([]any)[0].(map[string]any)
	require.Equal(t, "updateStatus", action["verb"])
	require.Contains(t, action["patch"], "status")

	_, text, _ := runDry(t, "", "--complete", "--output", "yaml", "testdata/subscription.yaml")
	var same map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &same))
	require.Empty(t, cmp.Diff(got, same))
}

// TestWhatWouldHaveToBeJudgedIsAskedFor: the dry run judges no custom resources, and says so.
func TestWhatWouldHaveToBeJudgedIsAskedFor(t *testing.T) {
	objects, err := apiserver.StricterSchema(map[string]int{"large": 10})
	require.NoError(t, err)
	c := fake.NewCluster(clock)
	require.NoError(t, c.Load(objects...))
	var list []any
	for _, o := range c.Objects() {
		m, err := olmcore.ToMap(o)
		require.NoError(t, err)
		list = append(list, m)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": list})
	require.NoError(t, err)
	code, got, errs := runDry(t, string(text), "--complete")
	require.Zero(t, code, errs)
	require.Contains(t, got, `asks         {"judge":{"customResourceDefinition":"crons.example.com","versions":["v1"]}}`)
}

// TestSimulatedCertificatesAreNamed: they belong into no cluster.
func TestSimulatedCertificatesAreNamed(t *testing.T) {
	code, got, errs := runDry(t, "", "--settle", "../../csv/testdata/base.yaml", "../../csv/testdata/webhook.yaml")
	require.Zero(t, code, errs)
	require.Contains(t, got, "\nSimulated:\n  the certificates: everybody can compute their keys, so use them nowhere\n")
	require.Contains(t, got, `asks         {"issue":{"deployment":"cool","hosts":["cool-service.ns","cool-service.ns.svc","cool-service.ns.svc.cluster.local"]}}`)
	require.Contains(t, got, "-> Succeeded")
}

// TestSecretsOfTheInputAreNotPrinted: neither in what is to be done, such as a key that takes the place of another, nor
// in the world after it. A simulated key is.
func TestSecretsOfTheInputAreNotPrinted(t *testing.T) {
	end := settleJSON(t, "", "../../csv/testdata/base.yaml", "../../csv/testdata/webhook.yaml")
	i := slices.IndexFunc(end.World, func(o json.RawMessage) bool {
		return strings.Contains(string(o), `"kind":"Secret"`) || strings.Contains(string(o), `"kind": "Secret"`)
	})
	var secret map[string]any
	require.NoError(t, json.Unmarshal(end.World[i], &secret))
	data := secret["data"].(map[string]any)
	key := data["tls.key"].(string)
	require.NotEmpty(t, key)
	require.NotEqual(t, notPrinted, key)
	for _, part := range []string{"olmCAKey", "tls.crt", "tls.key"} { // the certificate is to follow
		data["next."+part] = data[part]
		delete(data, part)
	}
	secret["metadata"].(map[string]any)["annotations"] = map[string]any{
		corev1.LastAppliedConfigAnnotation: key, "olmcore/next-trusted-since": "2026-01-01T00:00:00Z",
	}
	var err error
	end.World[i], err = json.Marshal(secret)
	require.NoError(t, err)
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": end.World})
	require.NoError(t, err)
	input := strings.ReplaceAll(string(list), `"phase":"Succeeded"`, `"phase":"InstallReady"`)
	for _, args := range [][]string{{"--complete"}, {"--settle"}} {
		for _, output := range []string{"table", "json", "yaml"} {
			code, out, errs := runDry(t, input, append(args, "--now", end.Now, "--output", output)...)
			require.Zero(t, code, errs)
			require.NotContains(t, out, key)
			require.Contains(t, out, "CertificateRotation")
			require.Equal(t, output != "table", strings.Contains(out, notPrinted))
		}
	}
}

func TestWhatAVersionWaitsForIsNamed(t *testing.T) {
	const group = "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: group, namespace: ns}\nspec: {targetNamespaces: [ns]}\n---\n"
	const version = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a, namespace: ns}\n" +
		"spec: {installModes: [{type: OwnNamespace, supported: true}], customresourcedefinitions: {required: [{name: as.example.com, kind: A, version: v1}]},\n" +
		"  install: {strategy: deployment, spec: {deployments: [], permissions: [{serviceAccountName: b, rules: [{verbs: [get], apiGroups: [\"\"], resources: [pods]}]}]}}}\n" +
		"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: b, namespace: ns}\n"
	code, out, errs := runDry(t, group+version, "--settle")
	require.Zero(t, code, errs)
	require.Contains(t, out, `
  lacks        CustomResourceDefinition as.example.com (NotPresent)
  lacks        ServiceAccount b (PresentNotSatisfied)
               PolicyRule: namespaced rule:{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}
`)
}

// TestAPIsWithoutClusterRolesAreNamed, also where nothing is to be done.
func TestAPIsWithoutClusterRolesAreNamed(t *testing.T) {
	data, err := os.ReadFile("testdata/csv.yaml")
	require.NoError(t, err)
	lines := slices.DeleteFunc(strings.Split(string(data), "\n"), func(line string) bool {
		return strings.Contains(line, "deletionTimestamp: ") || strings.Contains(line, "installed-alongside")
	})
	for _, how := range []string{"--complete", "--settle"} {
		code, out, errs := runDry(t, strings.Join(lines, "\n"), how)
		require.Zero(t, code, errs)
		require.Contains(t, out, "APINotRecorded")
		require.Contains(t, out, "no ClusterRoles are created for Etcd.v1.example.com")
	}
}

// TestThePackageServerMayRunBesideTheGlobalCatalogs checks that a dry run allows the package server in the namespaces
// in which the controllers allow it.
func TestThePackageServerMayRunBesideTheGlobalCatalogs(t *testing.T) {
	const world = `apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: group, namespace: market}
spec: {targetNamespaces: [market]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: packageserver, namespace: market}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: any, namespace: apps}
spec: {name: any, source: community, sourceNamespace: NAMESPACE}
---
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: packageserver, namespace: market}
spec:
  version: 1.0.0
  installModes: [{type: OwnNamespace, supported: true}]
  apiservicedefinitions:
    owned:
    - {name: packagemanifests, group: packages.operators.coreos.com, version: v1, kind: PackageManifest, deploymentName: server}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: server
        spec:
          selector: {matchLabels: {app: server}}
          template:
            metadata: {labels: {app: server}}
            spec: {serviceAccountName: packageserver, containers: [{name: server, image: example.com/server}]}
`
	for namespace, reserved := range map[string]bool{"market": false, "other": true} {
		text := strings.ReplaceAll(world, "NAMESPACE", namespace)
		settled := reportOf(t, text, "--settle")
		encoded, err := json.Marshal(settled)
		require.NoError(t, err)
		require.Equal(t, reserved, strings.Contains(string(encoded), "reserved for the package server"), namespace)

		settled = reportOf(t, strings.ReplaceAll(world, "NAMESPACE", "market"), "--settle")
		for _, o := range settled.World {
			if o["kind"] == "Subscription" {
				o["spec"].(map[string]any)["sourceNamespace"] = namespace
			}
		}
		list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": settled.World})
		require.NoError(t, err)
		_, out, errs := runDry(t, string(list), "--complete")
		require.Empty(t, errs)
		require.Equal(t, reserved, strings.Contains(out, "APIGroupShared"), "%s: %s", namespace, out)
	}
}

func TestNothingToSay(t *testing.T) {
	code, out, _ := runDry(t, "", "--now", "2026-01-01T00:00:00Z")
	require.Zero(t, code)
	require.Equal(t, "At 2026-01-01T00:00:00Z:\nno CatalogSource, Subscription, InstallPlan or ClusterServiceVersion in the input\n", out)
	_, out, _ = runDry(t, "", "--output", "json")
	require.JSONEq(t, `{"now":"2026-01-01T12:00:00Z","results":[]}`, out)
}

func TestKeysInAnotherCaseAreNamed(t *testing.T) {
	code, out, errs := runDry(t, "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a, namespace: b}\nspec: {MinKubeVersion: 1.30.0}\n")
	require.Zero(t, code, errs)
	require.Contains(t, out, "\nIn the input:\n  stdin: document 1: ClusterServiceVersion b/a: spec.MinKubeVersion is read as minKubeVersion, which an API server does not\n")
}

func TestWhatCannotBeReadIsOneLineAndExitCode2(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	require.NoError(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\nkind: Pod\n"), 0o600))
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"}}`
	for name, tt := range map[string]struct {
		stdin string
		args  []string
		want  string
	}{
		"a broken document": {"", []string{file}, "dryrun: " + file + ": document 2: invalid input: apiVersion is empty\n"},
		"broken stdin":      {"{", nil, "dryrun: stdin: document 1: unexpected EOF\n"},
		"an object twice":   {pod + pod, nil, "dryrun: stdin: document 2: Pod b/a stands in stdin, document 1, already\n"},
		"an unserved version": {`{"apiVersion":"v9","kind":"Namespace","metadata":{"name":"a"}}`, nil,
			"dryrun: stdin: document 1: Namespace a: no matches for kind \"Namespace\" in version \"v9\"\n"},
		"text":                {"hello", nil, "dryrun: stdin: document 1: invalid input: object is not a JSON object: it is of type string\n"},
		"no such file":        {"", []string{"missing.yaml"}, "dryrun: open missing.yaml: no such file or directory\n"},
		"an unknown flag":     {"", []string{"--what"}, "dryrun: flag provided but not defined: -what (--help lists the flags)\n"},
		"an unknown output":   {"", []string{"--output", "xml"}, "dryrun: --output \"xml\" is none of json, table, yaml\n"},
		"a time that is none": {"", []string{"--now", "noon"}, "dryrun: --now \"noon\" is no RFC 3339 time such as 2026-01-02T15:04:05Z\n"},
		"a negative advance":  {"", []string{"--advance", "-1s"}, "dryrun: --advance -1s is negative\n"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := runDry(t, tt.stdin, tt.args...)
			require.Equal(t, exitUsage, code)
			require.Empty(t, out)
			require.Equal(t, tt.want, errs)
		})
	}
	code, _, errs := runDry(t, "", "--help")
	require.Zero(t, code)
	require.Contains(t, errs, "usage: dryrun [flags] [FILE...]")
}

// settled is the part of a settled report that a test looks at.
type settled struct {
	Now     string            `json:"now"`
	Results []result          `json:"results"`
	World   []json.RawMessage `json:"world"`
}

func settleJSON(t testing.TB, stdin string, args ...string) settled {
	t.Helper()
	code, out, errs := runDry(t, stdin, append([]string{"--settle", "--output", "json"}, args...)...)
	require.Zero(t, code, errs)
	var got settled
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	return got
}

// requireAtRest feeds a settled world back and requires that nothing is asked for.
func requireAtRest(t testing.TB, end settled) {
	t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": end.World})
	require.NoError(t, err)
	code, out, errs := runDry(t, string(list), "--complete", "--now", end.Now, "--output", "json")
	require.Zero(t, code, errs)
	var again settled
	require.NoError(t, json.Unmarshal([]byte(out), &again))
	for _, r := range again.Results {
		require.Empty(t, r.Actions, "%s %s/%s", r.Kind, r.Namespace, r.Name)
	}
}

func TestASettledWorldAsksForNothing(t *testing.T) {
	worlds, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	for _, world := range worlds {
		t.Run(world, func(t *testing.T) { requireAtRest(t, settleJSON(t, "", world)) })
	}
}

func TestPublishedManifests(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(realdata.Dir(t), "manifests", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			end := settleJSON(t, "", file)
			requireAtRest(t, end)
			for _, r := range end.Results {
				if r.Kind == v1alpha1.ClusterServiceVersionKind {
					require.Equal(t, "Succeeded", r.Status.(map[string]any)["phase"], r.Name)
				}
			}
		})
	}
}

func TestPublishedBundles(t *testing.T) {
	for _, b := range realdata.Sample(t) {
		t.Run(b.Operator+" "+b.Version, func(t *testing.T) {
			var text bytes.Buffer
			for _, o := range b.Objects {
				if o.GetNamespace() == "" && olmcore.KeyOf(o).Kind == v1alpha1.ClusterServiceVersionKind {
					o.SetNamespace("operators")
				}
				m, err := olmcore.ToMap(o)
				require.NoError(t, err)
				document, err := json.Marshal(m)
				require.NoError(t, err)
				text.Write(document)
			}
			for _, args := range [][]string{nil, {"--complete"}} {
				code, _, errs := runDry(t, text.String(), args...)
				require.Zero(t, code, errs)
			}
			requireAtRest(t, settleJSON(t, text.String()))
		})
	}
}

func FuzzRun(f *testing.F) {
	worlds, err := filepath.Glob("testdata/*.yaml")
	require.NoError(f, err)
	for _, world := range worlds {
		text, err := os.ReadFile(world)
		require.NoError(f, err)
		f.Add(string(text), false)
		f.Add(string(text), true)
	}
	f.Fuzz(func(t *testing.T, text string, settle bool) {
		args := []string{"--now", "2026-01-01T12:00:00Z", "--output", "json", "--complete=" + strconv.FormatBool(len(text)%2 == 0)}
		if settle {
			args = append(args, "--settle")
		}
		code, _, errs := runDry(t, text, args...)
		require.Contains(t, []int{exitOK, exitUsage}, code, errs)
	})
}
