// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/apiserver"
	"github.com/olmcore/olm/examples/kubectl-olm/internal/world"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
)

// worldFile are the objects of the stories.
const worldFile = "../../testdata/world.yaml"

// objectsOf reads a file.
func objectsOf(t testing.TB, file string) []olmcore.Object {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	read, err := decode.Read(file, bytes.NewReader(text))
	require.NoError(t, err)
	objects, err := decode.Distinct(read)
	require.NoError(t, err)
	return objects
}

// live serves objects, and returns the server with the flags that lead to it.
func live(t testing.TB, objects ...olmcore.Object) (*apiserver.Server, []string) {
	c := fake.NewCluster(clock)
	c.AutoCreateNamespaces = true
	require.NoError(t, c.Load(objects...))
	s := apiserver.New(c)
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, apiserver.Kubeconfig(front.URL), 0o600))
	return s, []string{"--kubeconfig", file, "--cache-dir", t.TempDir()}
}

// TestALiveClusterIsAnsweredAsItsFiles: and nothing is written.
func TestALiveClusterIsAnsweredAsItsFiles(t *testing.T) {
	s, flags := live(t, objectsOf(t, worldFile)...)
	for _, args := range []string{"status", "status -o json", "status broker etcd -o wide", "why storage", "why csv/broker.v2.1.0 -o json", "why catsrc/community", "why install-22222"} {
		code, want, errs := run(t, "", append(strings.Fields(args), "-f", worldFile, "--complete")...)
		require.Zero(t, code, errs)
		code, got, errs := run(t, "", append(append(strings.Fields(args), "-A"), flags...)...)
		require.Zero(t, code, errs)
		require.Empty(t, errs)
		require.Equal(t, want, got, args)
	}
	for _, args := range []string{"next", "audit"} {
		code, out, errs := run(t, "", append([]string{args, "-A", "-o", "json"}, flags...)...)
		require.Zero(t, code, errs)
		require.Contains(t, out, "WedgedUpgradePending")
	}
	for verb := range s.Requests() {
		require.Contains(t, []string{"discovery", "get", "list"}, verb)
	}
}

// TestTheNamespaceIsThatOfKubectl: -n, or the one of the context, which has none here.
func TestTheNamespaceIsThatOfKubectl(t *testing.T) {
	_, flags := live(t, objectsOf(t, worldFile)...)
	code, out, errs := run(t, "", append([]string{"status", "-n", "tools"}, flags...)...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "2 Subscriptions: 1 WaitingForApproval, 1 Installed.")
	code, out, errs = run(t, "", append([]string{"status"}, flags...)...)
	require.Zero(t, code, errs)
	require.Equal(t, "No Subscriptions in namespace default. With -A all namespaces are looked at.\n", out)
	code, _, errs = run(t, "", append([]string{"why", "broker", "-n", "tools"}, flags...)...)
	require.Equal(t, 2, code)
	require.Equal(t, "error: there is no Subscription, CSV, InstallPlan, CatalogSource or package \"broker\" in namespace tools\n", errs)
}

// TestAKindThatMayNotBeReadIsNotRead: it is said, and what it would tell is left open.
func TestAKindThatMayNotBeReadIsNotRead(t *testing.T) {
	s, flags := live(t, objectsOf(t, worldFile)...)
	forbidden := func(what authorizationv1.ResourceAttributes) bool { return what.Resource == "pods" }
	s.Authorize = func(what authorizationv1.ResourceAttributes) bool { return !forbidden(what) }
	status := append([]string{"status", "broker", "-n", "apps"}, flags...)
	code, out, errs := run(t, "", status...)
	require.Zero(t, code, errs)
	require.Regexp(t, `^not read: pods: the API server says pods is forbidden.*\n$`, errs)
	require.Contains(t, out, "deployment/broker")

	forbidden = func(what authorizationv1.ResourceAttributes) bool {
		return what.Resource == "catalogsources" && what.Namespace == ""
	}
	code, _, errs = run(t, "", status...)
	require.Zero(t, code)
	require.Empty(t, errs, "the namespace that the Subscriptions name may be read")

	forbidden = func(what authorizationv1.ResourceAttributes) bool { return what.Resource == "installplans" }
	code, out, _ = run(t, "", append([]string{"status", "broker", "-n", "apps", "-o", "json", "--exit-code"}, flags...)...)
	require.Equal(t, 1, code)
	require.Contains(t, out, `"phase": "Unknown"`)
	require.Contains(t, out, `"advice": "Ask for the right to list them."`)

	forbidden = func(what authorizationv1.ResourceAttributes) bool { return what.Resource == "subscriptions" }
	code, out, errs = run(t, "", status...)
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, errs, "\nerror: subscriptions.operators.coreos.com were not read: the API server says ")
}

// TestWhyReportsRolesThatAreNotLiftedOnlyIfItMayReadThem checks that the line about permissions needs no right in the
// cluster, and that it is left out without an error where Roles and RoleBindings may not be listed.
func TestWhyReportsRolesThatAreNotLiftedOnlyIfItMayReadThem(t *testing.T) {
	const file = "../../testdata/permissions.yaml"
	s, flags := live(t, objectsOf(t, file)...)
	why := append([]string{"why", "backup", "-n", "tools"}, flags...)
	code, complete, errs := run(t, "", "why", "backup", "-f", file, "--complete")
	require.Zero(t, code, errs)
	lines := strings.SplitAfter(complete, "\n")
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Permissions ") })
	require.Positive(t, i)
	line := lines[i]
	nothing := strings.Replace(complete, line, "To do          Nothing.\n", 1)
	ofRole := strings.Replace(strings.Replace(complete, ", RoleBinding backup-extra", "", 1), "created them", "created it", 1)

	for name, c := range map[string]struct {
		forbidden []string
		want      string
	}{
		"nothing":                {nil, complete},
		"cluster-scoped kinds":   {[]string{"clusterroles", "clusterrolebindings", "customresourcedefinitions", "apiservices"}, complete},
		"RoleBindings":           {[]string{"rolebindings"}, ofRole},
		"Roles and RoleBindings": {[]string{"roles", "rolebindings"}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			s.Authorize = func(what authorizationv1.ResourceAttributes) bool {
				return !slices.Contains(c.forbidden, what.Resource)
			}
			code, out, errs := run(t, "", why...)
			require.Zero(t, code, errs)
			require.Empty(t, errs)
			require.Equal(t, c.want, out)
		})
	}

	s.Authorize = nil
	code, out, errs := run(t, "", append(why, "-o", "json", "--exit-code")...)
	require.Zero(t, code, errs)
	require.NotContains(t, out, "backup-extra")

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	documents := strings.Split(string(text), "\n---\n")
	withoutRoles := strings.Join(documents[:len(documents)-2], "\n---\n")
	code, out, errs = run(t, withoutRoles, "why", "backup", "-f", "-")
	require.Zero(t, code, errs)
	require.Empty(t, errs, "files need no Roles")
	require.Equal(t, nothing, out)
}

func TestAKindThatIsNotServedIsNotRead(t *testing.T) {
	_, flags := live(t, objectsOf(t, worldFile)...)
	code, out, errs := run(t, "", append([]string{"catalog", "-n", "tools"}, flags...)...)
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, errs, "not read: packagemanifests.packages.operators.coreos.com: the API server does not serve them\nerror: the content of no catalog is known: ")
}

// TestAServerThatFailsIsAnError: nothing is said of objects that were not read for it.
func TestAServerThatFailsIsAnError(t *testing.T) {
	s, flags := live(t, objectsOf(t, worldFile)...)
	s.Break(true)
	code, out, errs := run(t, "", append([]string{"status", "-A", "--exit-code"}, flags...)...)
	require.Equal(t, 2, code)
	require.Empty(t, out)
	require.Contains(t, errs, "error: ")
}

// TestOneObjectThatDoesNotFitHidesNoOther: an API server keeps what a schema does not forbid.
func TestOneObjectThatDoesNotFitHidesNoOther(t *testing.T) {
	s, flags := live(t, objectsOf(t, worldFile)...)
	s.Stored = func(o map[string]any) {
		if o["kind"] == "ClusterServiceVersion" && o["metadata"].(map[string]any)["name"] == "broker.v2.1.0" {
			o["spec"] = map[string]any{"version": []any{"no version"}}
		}
	}
	code, out, errs := run(t, "", append([]string{"status", "-A"}, flags...)...)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "warning: ClusterServiceVersion apps/broker.v2.1.0 is left out: ")
	require.Contains(t, out, "tools       backup    backup    stable    Installed")
}

// TestListsAreReadInPages: however many objects there are.
func TestListsAreReadInPages(t *testing.T) {
	var objects []olmcore.Object
	for i := range 2*world.PageSize + 1 {
		objects = append(objects, &v1alpha1.Subscription{
			ObjectMeta: metav1.ObjectMeta{Namespace: "many", Name: fmt.Sprintf("sub-%04d", i)},
			Spec:       &v1alpha1.SubscriptionSpec{Package: fmt.Sprintf("p-%04d", i), CatalogSource: "c", CatalogSourceNamespace: "olm"},
		})
	}
	s, flags := live(t, objects...)
	s.Requests()
	code, out, errs := run(t, "", append([]string{"status", "-n", "many"}, flags...)...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "\n1001 Subscriptions: ")
	require.Equal(t, 7+2, s.Requests()["list"], "seven kinds, and of one of them three pages")
}

func TestNamesAreCompleted(t *testing.T) {
	_, flags := live(t, objectsOf(t, worldFile)...)
	_, out, _ := run(t, "", append(append([]string{"__complete"}, flags...), "-n", "tools", "why", "")...)
	require.Equal(t, "backup\netcd\n:4\n", out)
	_, out, _ = run(t, "", append(append([]string{"__complete"}, flags...), "-n", "tools", "status", "backup", "e")...)
	require.Equal(t, "etcd\n:4\n", out)
	_, out, _ = run(t, "", "__complete", "status", "-o", "")
	require.Equal(t, "table\nwide\njson\nyaml\nmermaid\nhtml\n:4\n", out)
	_, out, _ = run(t, "", "__complete", "status", "-f", worldFile, "")
	require.Equal(t, "backup\nbroker\netcd\nmirror\nstorage\n:4\n", out)
	_, out, _ = run(t, "", "__complete", "--kubeconfig", "missing", "status", "")
	require.Equal(t, ":1\n", out)
}
