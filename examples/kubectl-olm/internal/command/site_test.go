// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/examples/kubectl-olm/internal/command"
	"github.com/olmcore/olm/olmcore"
)

// TestPreviewsSeparatePlansAsTheControllersDo checks that the newest InstallPlan shows whether the controllers make
// separate plans, unless the user says it with --separate-plans.
func TestPreviewsSeparatePlansAsTheControllersDo(t *testing.T) {
	plan := func(name string, generation int, annotations map[string]string) olmcore.Object {
		return &v1alpha1.InstallPlan{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name, Annotations: annotations},
			Spec:       v1alpha1.InstallPlanSpec{Generation: generation},
		}
	}
	separate := map[string]string{olmcore.AnnotationSeparatePlan: "true"}
	shared, ofSet := plan("p", 1, nil), plan("q", 2, separate)
	for name, tt := range map[string]struct {
		plans []olmcore.Object
		flag  string
		want  bool
	}{
		"no plan":                     {},
		"one plan for all":            {plans: []olmcore.Object{shared}},
		"a plan of a set":             {plans: []olmcore.Object{shared, ofSet}, want: true},
		"auto":                        {plans: []olmcore.Object{shared, ofSet}, flag: "auto", want: true},
		"switched off meanwhile":      {plans: []olmcore.Object{plan("p", 3, nil), ofSet}},
		"the user says it, no plan":   {flag: "true", want: true},
		"the user says it":            {plans: []olmcore.Object{shared}, flag: "true", want: true},
		"the user denies it":          {plans: []olmcore.Object{shared, ofSet}, flag: "false"},
		"another way to deny it is 0": {plans: []olmcore.Object{ofSet}, flag: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := olmcore.NewSnapshot(tt.plans)
			require.NoError(t, err)
			options, err := command.OptionsIn(t.Context(), snapshot, "ops", tt.flag)
			require.NoError(t, err)
			require.Equal(t, tt.want, options.InstallPlan.SeparatePlans)
		})
	}
}

// twoPackages writes files with two Subscriptions and more objects, and with the catalog of their packages. It returns
// the flags for them.
func twoPackages(t *testing.T, more ...string) []string {
	world := []string{
		"apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: all, namespace: ops, uid: g}",
		"apiVersion: operators.coreos.com/v1alpha1\nkind: CatalogSource\nmetadata: {name: community, namespace: olm, uid: c}\n" +
			"spec: {sourceType: grpc, address: 'registry:50051'}",
	}
	var catalog []string
	for _, name := range []string{"links", "mesh"} {
		world = append(world, fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\n"+
			"metadata: {name: %[1]s, namespace: ops, uid: %[1]s, creationTimestamp: '2026-01-01T00:00:00Z'}\n"+
			"spec: {name: %[1]s, channel: stable, source: community, sourceNamespace: olm}", name))
		version := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name + ".v1.0.0"}}
		version.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.ClusterServiceVersionAPIVersion, Kind: v1alpha1.ClusterServiceVersionKind}
		version.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
		version.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
		data, err := json.Marshal(version)
		require.NoError(t, err)
		catalog = append(catalog,
			fmt.Sprintf("schema: olm.package\nname: %s\ndefaultChannel: stable", name),
			fmt.Sprintf("schema: olm.channel\nname: stable\npackage: %[1]s\nentries: [{name: %[1]s.v1.0.0}]", name),
			fmt.Sprintf("schema: olm.bundle\nname: %[1]s.v1.0.0\npackage: %[1]s\nimage: registry.example.com/%[1]s:1\nproperties:\n"+
				"- {type: olm.package, value: {packageName: %[1]s, version: 1.0.0}}\n"+
				"- {type: olm.bundle.object, value: {data: %[2]s}}", name, base64.StdEncoding.EncodeToString(data)))
	}
	dir := t.TempDir()
	write := func(name string, documents []string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(documents, "\n---\n")+"\n"), 0o600))
		return file
	}
	return []string{
		"-f", write("world.yaml", append(world, more...)), "--complete", "--now", clock.Format(time.RFC3339),
		"--catalog", "olm/community=" + write("catalog.yaml", catalog),
	}
}

// TestNextMakesSeparatePlans checks that next creates one InstallPlan for each of two independent Subscriptions if the
// user says so, or if an InstallPlan shows that the controllers do.
func TestNextMakesSeparatePlans(t *testing.T) {
	const ofSet = "apiVersion: operators.coreos.com/v1alpha1\nkind: InstallPlan\n" +
		"metadata: {name: other, namespace: elsewhere, annotations: {olmcore/separate-plan: 'true'}}\nspec: {generation: 1}"
	for name, tt := range map[string]struct {
		more, flags []string
		want        int
	}{
		"nothing shows it":   {want: 1},
		"a plan shows it":    {more: []string{ofSet}, want: 2},
		"the user says it":   {flags: []string{"--separate-plans"}, want: 2},
		"the user denies it": {more: []string{ofSet}, flags: []string{"--separate-plans=false"}, want: 1},
		"auto":               {flags: []string{"--separate-plans=auto"}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"next", "-o", "json"}, tt.flags...)
			code, out, errs := run(t, "", append(args, twoPackages(t, tt.more...)...)...)
			require.Zero(t, code, errs)
			var report struct {
				Results []struct {
					Actions []struct {
						Verb   string
						Target struct{ Kind string }
					}
				}
			}
			require.NoError(t, json.Unmarshal([]byte(out), &report))
			created := 0
			for _, result := range report.Results {
				for _, action := range result.Actions {
					if action.Verb == "create" && action.Target.Kind == v1alpha1.InstallPlanKind {
						created++
					}
				}
			}
			require.Equal(t, tt.want, created, out)
		})
	}
}

// TestSeparatePlansIsAFlagOfCommandsThatPreview checks which commands have the flag, and what they answer to a wrong
// value.
func TestSeparatePlansIsAFlagOfCommandsThatPreview(t *testing.T) {
	for _, name := range []string{"approve", "next", "path", "rollback"} {
		_, help, _ := run(t, "", name, "--help")
		require.Contains(t, help, "--separate-plans auto|true|false", name)
		code, _, errs := run(t, "", name, "x", "--separate-plans=perhaps")
		require.Equal(t, 2, code)
		require.Contains(t, errs, "none of auto, true and false", name)
	}
	for _, name := range []string{"status", "why", "audit", "catalog"} {
		_, help, _ := run(t, "", name, "--help")
		require.NotContains(t, help, "--separate-plans", name)
	}
	code, _, errs := run(t, "", append([]string{"path", "links", "--separate-plans"}, twoPackages(t)...)...)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--separate-plans needs --preview")
}
