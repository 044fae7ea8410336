// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/health/internal/rules"
)

// published is the folder with the generated files that users copy.
const published = "../../rules"

// TestGeneratedFilesMatchTheTables compares the folders argocd and flux with the tables. OLMCORE_UPDATE=1 rewrites
// them.
func TestGeneratedFilesMatchTheTables(t *testing.T) {
	config := `# Health of OLM's objects in Argo CD: merge data into the ConfigMap argocd-cm.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/name: argocd-cm
    app.kubernetes.io/part-of: argocd
data:
`
	flux := `# Health of OLM's objects in Flux: copy spec.healthCheckExprs into the Kustomization that applies them.
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: operators
  namespace: flux-system
spec:
  interval: 10m
  path: ./operators
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
  timeout: 10m
  wait: true
  healthCheckExprs:
`
	files := map[string]string{}
	for _, table := range rules.Tables() {
		script, err := rules.ArgoCD(table.Kind)
		require.NoError(t, err)
		files["argocd/"+table.Kind+".lua"] = script
		config += "  resource.customizations.health.operators.coreos.com_" + table.Kind + ": |\n" + indented(script, "    ")
		check, err := rules.Flux(table.Kind)
		require.NoError(t, err)
		flux += "    - apiVersion: " + check.APIVersion + "\n      kind: " + check.Kind + "\n"
		for _, e := range []struct{ name, text string }{{"inProgress", check.InProgress}, {"failed", check.Failed}, {"current", check.Current}} {
			flux += "      " + e.name + ": |-\n" + indented(e.text+"\n", "        ")
		}
	}
	files["argocd/argocd-cm.yaml"], files["flux/kustomization.yaml"] = config, flux
	for name, want := range files {
		file := filepath.Join(published, name)
		if os.Getenv("OLMCORE_UPDATE") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
		}
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(have), name)
	}
	for _, folder := range []string{"argocd", "flux"} {
		entries, err := os.ReadDir(filepath.Join(published, folder))
		require.NoError(t, err)
		for _, e := range entries {
			require.Contains(t, files, folder+"/"+e.Name(), "a file that nothing writes")
		}
	}
}

// TestYAMLContainsTheScripts reads the two YAML files as Argo CD and Flux do.
func TestYAMLContainsTheScripts(t *testing.T) {
	var config struct{ Data map[string]string }
	var flux struct {
		Spec struct{ HealthCheckExprs []rules.HealthCheck }
	}
	for name, into := range map[string]any{"argocd/argocd-cm.yaml": &config, "flux/kustomization.yaml": &flux} {
		data, err := os.ReadFile(filepath.Join(published, name))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(data, into))
	}
	require.Len(t, config.Data, len(rules.Tables()))
	require.Len(t, flux.Spec.HealthCheckExprs, len(rules.Tables()))
	for i, table := range rules.Tables() {
		script, err := rules.ArgoCD(table.Kind)
		require.NoError(t, err)
		require.Equal(t, script, config.Data["resource.customizations.health.operators.coreos.com_"+table.Kind])
		check, err := rules.Flux(table.Kind)
		require.NoError(t, err)
		require.Equal(t, check, flux.Spec.HealthCheckExprs[i])
	}
}

// indented puts spaces before each line that is not empty.
func indented(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line != "\n" {
			b.WriteString(by)
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestHealthOfAnObjectForEachRow checks one object for each row of each table.
func TestHealthOfAnObjectForEachRow(t *testing.T) {
	conditions := func(kind, status, reason, message string) []any {
		return []any{nil, "x", map[string]any{"type": "Other", "status": "True"}, map[string]any{"type": kind, "status": status, "reason": reason, "message": message}}
	}
	type object = map[string]any
	sub := func(status object) object { return object{"spec": object{"name": "etcd"}, "status": status} }
	of := func(status object) object { return object{"status": status} }
	for _, tc := range []struct {
		kind string
		o    object
		want string
	}{
		{"Subscription", object{"metadata": object{"deletionTimestamp": "2026-03-01T10:00:00Z"}}, "Progressing Deleting InProgress: the Subscription is being deleted"},
		{"Subscription", object{}, "Degraded InvalidSpec Failed: the Subscription names no package"},
		{"Subscription", sub(object{"state": "AtLatestKnown", "conditions": conditions("InstallPlanFailed", "True", "x", "step broke")}), "Degraded InstallPlanFailed Failed: step broke"},
		{"Subscription", sub(object{"installPlanRef": object{"name": "p"}, "conditions": conditions("InstallPlanPending", "True", "RequiresApproval", "x")}),
			"Suspended RequiresApproval InProgress: InstallPlan p waits for approval"},
		{"Subscription", sub(object{"currentCSV": "etcd.v1", "installPlanRef": object{"name": "p"}, "conditions": conditions("InstallPlanPending", "True", "Installing", "")}), "Progressing InstallPlanPending InProgress: InstallPlan p installs etcd.v1"},
		{"Subscription", sub(object{"conditions": conditions("ResolutionFailed", "True", "x", "no operators found")}), "Degraded ResolutionFailed InProgress: no operators found"},
		{"Subscription", sub(object{"conditions": conditions("BundleUnpackFailed", "True", "x", "")}), "Degraded BundleUnpackFailed InProgress: a bundle cannot be unpacked"},
		{"Subscription", sub(object{"conditions": conditions("BundleUnpacking", "True", "x", "")}), "Progressing BundleUnpacking InProgress: bundles are being unpacked"},
		{"Subscription", sub(object{"state": "UpgradeFailed", "currentCSV": "etcd.v1"}), "Degraded UpgradeFailed Failed: etcd.v1 could not be installed"},
		{"Subscription", sub(object{"state": "AtLatestKnown", "installedCSV": "etcd.v1", "conditions": conditions("InstallPlanMissing", "True", "x", "")}), "Healthy Installed Current: etcd.v1 is installed"},
		{"Subscription", sub(object{"state": "AtLatestKnown", "installedCSV": "etcd.v1", "conditions": conditions("InstallPlanPending", "True", "RequiresApproval", "")}), "Healthy Installed Current: etcd.v1 is installed"},
		{"Subscription", sub(object{"state": "UpgradePending", "conditions": conditions("InstallPlanMissing", "True", "x", "")}), "Progressing InstallPlanMissing InProgress: the InstallPlan was deleted"},
		{"Subscription", sub(object{"conditions": conditions("CatalogSourcesUnhealthy", "True", "x", "cool is missing")}), "Progressing CatalogSourcesUnhealthy InProgress: cool is missing"},
		{"Subscription", sub(object{"currentCSV": "etcd.v1", "conditions": conditions("CatalogSourcesUnhealthy", "False", "x", "")}), "Progressing UpgradePending InProgress: etcd.v1 is being installed"},
		{"Subscription", sub(nil), "Progressing Resolving InProgress: the namespace has to be resolved"},
		{"InstallPlan", object{"metadata": object{"deletionTimestamp": "x"}}, "Progressing Deleting InProgress: the InstallPlan is being deleted"},
		{"InstallPlan", of(object{"phase": "Complete"}), "Healthy Complete Current: all steps are done"},
		{"InstallPlan", of(object{"phase": "Failed", "conditions": conditions("Installed", "False", "Superseded", "")}),
			"Healthy Superseded Current: another InstallPlan superseded it"},
		{"InstallPlan", of(object{"phase": "Failed", "conditions": conditions("Installed", "False", "InstallComponentFailed", "step broke")}), "Degraded Failed Failed: step broke"},
		{"InstallPlan", of(object{"phase": "Failed", "message": "bundle unpacking failed"}), "Degraded Failed Failed: bundle unpacking failed"},
		{"InstallPlan", object{"spec": object{"approved": true}, "status": object{"phase": "RequiresApproval"}}, "Progressing Approved InProgress: it is approved and about to run"},
		{"InstallPlan", object{"spec": object{"approved": "true"}, "status": object{"phase": "RequiresApproval"}},
			"Suspended RequiresApproval InProgress: it waits for approval: set spec.approved to true"},
		{"InstallPlan", of(object{"phase": "Installing", "conditions": conditions("Installed", "False", "InstallCheckFailed", "no OperatorGroup")}), "Progressing Installing InProgress: no OperatorGroup"},
		{"InstallPlan", of(object{"phase": "Installing"}), "Progressing Installing InProgress: its steps are being applied"},
		{"InstallPlan", of(object{"phase": "Planning"}), "Progressing Planning InProgress: its steps are being planned"},
		{"InstallPlan", of(object{"phase": "Melting"}), "Unknown UnknownPhase InProgress: its phase Melting is unknown"},
		{"InstallPlan", of(object{"phase": 7.0}), "Progressing NotYetReconciled InProgress: it has no phase yet"},
		{"ClusterServiceVersion", object{"metadata": object{"deletionTimestamp": "x"}}, "Progressing Deleting InProgress: the ClusterServiceVersion is being deleted"},
		{"ClusterServiceVersion", of(object{"phase": "Succeeded"}), "Healthy Succeeded Current: the operator is installed"},
		{"ClusterServiceVersion", of(object{"phase": "Failed", "message": "timeout"}), "Degraded Failed Failed: timeout"},
		{"ClusterServiceVersion", of(object{"phase": "Pending", "reason": "RequirementsNotMet"}), "Progressing RequirementsNotMet InProgress: requirements are not met"},
		{"ClusterServiceVersion", of(object{"phase": "Pending", "reason": "OperatorConditionNotUpgradeable"}), "Progressing OperatorConditionNotUpgradeable InProgress: the operator that it replaces does not allow its upgrade"},
		{"ClusterServiceVersion", of(object{"phase": "InstallReady"}), "Progressing Installing InProgress: the operator is being installed"},
		{"ClusterServiceVersion", of(object{"phase": "Replacing"}), "Progressing Replacing InProgress: a newer version replaces it"},
		{"ClusterServiceVersion", of(object{"phase": "Melting"}), "Unknown UnknownPhase InProgress: its phase Melting is unknown"},
		{"ClusterServiceVersion", of(nil), "Progressing NotYetReconciled InProgress: it has no phase yet"},
		{"CatalogSource", object{"metadata": object{"deletionTimestamp": "x"}}, "Progressing Deleting InProgress: the CatalogSource is being deleted"},
		{"CatalogSource", of(object{"reason": "SpecInvalidError", "message": "image and address unset"}), "Degraded Invalid Failed: image and address unset"},
		{"CatalogSource", of(object{"connectionState": object{"lastObservedState": "READY"}}), "Healthy Ready Current: the registry answers"},
		{"CatalogSource", of(object{"conditions": conditions("Available", "True", "x", "1 Pod serves")}), "Healthy Available Current: 1 Pod serves"},
		{"CatalogSource", of(object{"conditions": conditions("Degraded", "True", "x", "")}),
			"Degraded Degraded InProgress: no registry Pod serves"},
		{"CatalogSource", of(object{"connectionState": object{"lastObservedState": "TRANSIENT_FAILURE"}}), "Degraded Unreachable InProgress: the registry does not answer: TRANSIENT_FAILURE"},
		{"CatalogSource", of(object{"connectionState": object{"lastObservedState": "IDLE"}}), "Progressing Connecting InProgress: the connection is IDLE"},
		{"CatalogSource", of(object{"connectionState": nil}), "Progressing NotYetReconciled InProgress: the registry has not been observed yet"},
	} {
		tc.o["apiVersion"], tc.o["kind"] = "operators.coreos.com/v1alpha1", tc.kind
		r, err := rules.OfContent(tc.o)
		require.NoError(t, err)
		require.Equal(t, tc.want, string(r.Status)+" "+r.Reason+" "+r.KStatus()+": "+r.Message)
	}
}

// TestUnsupportedObjectsAreRejected checks that the error names the field.
func TestUnsupportedObjectsAreRejected(t *testing.T) {
	var none *v1alpha1.Subscription
	for name, o := range map[string]olmcore.Object{
		"nothing": nil, "a typed nothing": none, "another kind": &corev1.Pod{}, "no kind": &unstructured.Unstructured{},
		"another group": &unstructured.Unstructured{Object: map[string]any{"apiVersion": "messaging.knative.dev/v1", "kind": "Subscription"}},
	} {
		_, err := rules.Evaluate(o)
		require.ErrorIs(t, err, olmcore.ErrInvalidInput, name)
	}
	_, err := rules.OfContent(nil)
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, err = rules.ArgoCD("Pod")
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
	_, err = rules.Flux("Pod")
	require.ErrorIs(t, err, olmcore.ErrInvalidInput)
}

// TestTablesReturnsACopy checks that a caller may modify the result of Tables.
func TestTablesReturnsACopy(t *testing.T) {
	rules.Tables()[0].Rows[0].Status = "Melting"
	require.Equal(t, rules.Progressing, rules.Tables()[0].Rows[0].Status)
}

// FuzzAnyContentHasAStatus: no JSON makes the evaluation panic, and each has a status of Argo CD.
func FuzzAnyContentHasAStatus(f *testing.F) {
	f.Add(`{"kind":"Subscription","status":{"conditions":[null,7,{"type":"InstallPlanPending","status":"True","reason":[]}]}}`)
	f.Add(`{"kind":"InstallPlan","spec":[],"status":"Complete"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		for _, table := range rules.Tables() {
			object["apiVersion"], object["kind"] = "operators.coreos.com/v1alpha1", table.Kind
			r, err := rules.OfContent(object)
			require.NoError(t, err)
			require.Contains(t, []rules.Status{rules.Healthy, rules.Progressing, rules.Degraded, rules.Suspended, rules.Unknown}, r.Status)
			require.NotEmpty(t, r.Reason)
		}
	})
}
