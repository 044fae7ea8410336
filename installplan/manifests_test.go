// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// TestInvalidManifestsAreRefused: each is refused, and nothing is written.
func TestInvalidManifestsAreRefused(t *testing.T) {
	for name, manifest := range map[string]string{
		"empty": "", "a list": "[]", "a number": "1", "null": "null", "broken": "{", "only a separator": "---\n---", "a string": "metadata",
		"metadata that is none": `{"metadata":1}`, "rules that are none": `{"metadata":{"name":"r"},"rules":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "Role", "r", manifest)}, started(time.Second)))
			r := reconcile(t, in)
			require.Equal(t, []string{status}, describe(r))
			if name != "empty" && name != "null" && name != "only a separator" {
				require.Equal(t, failed, statusOf(in, r).Phase)
				return
			}
			// OLM tries for a minute to read what holds nothing.
			require.Equal(t, installing, statusOf(in, r).Phase)
			require.Equal(t, "retrying execution due to error: error parsing step manifest: r: it is empty", statusOf(in, r).Message)
			in.InstallPlan.Status, in.Now = statusOf(in, r), noon.Add(59*time.Second)
			r = reconcile(t, in)
			require.Equal(t, failed, statusOf(in, r).Phase)
			require.Equal(t, "error parsing step manifest: r: it is empty", statusOf(in, r).Message)
		})
	}
	several := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", "# a\n---\nmetadata: {name: x}\n---\nmetadata: {name: y}\n")}, started(time.Second)))
	r := reconcile(t, several)
	require.Equal(t, []string{status, "create ConfigMap ops/x (StepAbsent)"}, describe(r))
	require.Equal(t, []string{installplan.ReasonExtraDocumentsIgnored}, reasons(r))

	for name, manifest := range map[string]string{
		"JSON, and more":              `{"metadata":{"name":"x"},"data":{"1":"a"}}` + "\n---\n" + `{"metadata":{"name":"y"}}`,
		"YAML that looks like JSON":   `{metadata: {name: x}, data: {1: a}}`,
		"keys that are no strings":    "metadata: {name: x}\ndata:\n  1: a\n",
		"a key that is there twice":   `{"metadata":{"name":"y","name":"x"},"data":{"1":"b","1":"a"}}`,
		"a key that is overwritten":   "metadata: {name: x}\ndata: {\"1\": b, \"1\": a}\n",
		"names that differ in a case": `{"metadata":{"name":"x","Name":"y"},"data":{"1":"a"}}`,
	} {
		in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", manifest)}, started(time.Second)))
		r := reconcile(t, in)
		require.Equal(t, []string{status, "create ConfigMap ops/x (StepAbsent)"}, describe(r), name)
		require.Equal(t, map[string]string{"1": "a"}, r.Actions[1].(olmcore.Create).Object.(*corev1.ConfigMap).Data, name)
	}
	ambiguous := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", "metadata: {name: x}\ndata: {1: a, \"1\": b, true: a, \"true\": b}\n")}, started(time.Second)))
	require.Equal(t, `error parsing step manifest: x: key "1" is there twice`, statusOf(ambiguous, reconcile(t, ambiguous)).Message)

	misnamed := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", `{"metadata":{"name":"y"}}`)}, started(time.Second)))
	r = reconcile(t, misnamed)
	require.Equal(t, []string{status, "create ConfigMap ops/y (StepAbsent)"}, describe(r))
	require.Equal(t, []string{installplan.ReasonStepNameDiffers}, reasons(r))
}

// TestManifestWithoutGroupIsOfItsStepsKind, as OLM goes by the step's.
func TestManifestWithoutGroupIsOfItsStepsKind(t *testing.T) {
	crd := crdStep("", "v1")
	object := crdObject("v1")
	object.APIVersion = "v1"
	crd.Resource = step("", "", "v1", "CustomResourceDefinition", object.Name, object).Resource
	made := reconcile(t, input(plan(installing, []*v1alpha1.Step{crd}, started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "apiextensions.k8s.io/v1", made.Target.APIVersion)
	require.Equal(t, object.Spec, made.Object.(*apiextensionsv1.CustomResourceDefinition).Spec)

	role := step("", "", "v1", "Role", "r", `{"apiVersion":"v1","kind":"Role","metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
	made = reconcile(t, input(plan(installing, []*v1alpha1.Step{role}, started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "rbac.authorization.k8s.io/v1", made.Target.APIVersion)
	require.Equal(t, rules(), made.Object.(*rbacv1.Role).Rules)

	version := csvStep("a.v1")
	version.Resource.Manifest = `{"apiVersion":"v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"displayName":"Cool"}}`
	made = reconcile(t, input(plan(installing, []*v1alpha1.Step{version}, started(time.Second)))).Actions[1].(olmcore.Create)
	require.Equal(t, "operators.coreos.com/v1alpha1", made.Target.APIVersion)
	require.Equal(t, "Cool", made.Object.(*v1alpha1.ClusterServiceVersion).Spec.DisplayName)

	elsewhere := step("", "", "v1", "Role", "r", `{"apiVersion":"example.com/v1","kind":"Role","metadata":{"name":"r"}}`)
	in := input(plan(installing, []*v1alpha1.Step{elsewhere}, started(time.Second)))
	require.Equal(t, "error parsing step manifest: r: kind is Role.example.com", statusOf(in, reconcile(t, in)).Message)
}

// TestManifestLosesWhatAClusterAssigned: identity, times and status are those that the API server gives.
func TestManifestLosesWhatAClusterAssigned(t *testing.T) {
	s := step("", "", "v1", "Service", "x", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x","namespace":"elsewhere","uid":"u","resourceVersion":"7",
		"creationTimestamp":"2020-01-01T00:00:00Z","managedFields":[{}],"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]},
		"spec":{"clusterIP":"None"},"status":{"loadBalancer":{}}}`)
	r := reconcile(t, input(plan(installing, []*v1alpha1.Step{s}, started(time.Second))))
	made := r.Actions[1].(olmcore.Create).Object.(*corev1.Service)
	delete(made.Annotations, stepHash)
	same(t, metav1.ObjectMeta{Namespace: ns, Name: "x", Labels: map[string]string{"olm.managed": "true"}}, made.ObjectMeta)
}

// TestManifestKeysInAnyCase: as encoding/json reads them, and so OLM.
func TestManifestKeysInAnyCase(t *testing.T) {
	manifest := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"},"spec":{"MinKubeVersion":"1.30.0",
		"install":{"strategy":"deployment","spec":{"permissions":[{"serviceaccountname":"x","rules":[]}]}}}}`
	in := input(plan(installing, []*v1alpha1.Step{step("a.v1", "operators.coreos.com", "v1alpha1", "ClusterServiceVersion", "a.v1", manifest)}, started(time.Second)))
	result := reconcile(t, in)
	require.Equal(t, []string{installplan.ReasonKeyCase, installplan.ReasonKeyCase}, reasons(result))
	var made *v1alpha1.ClusterServiceVersion
	for _, a := range result.Actions {
		if c, ok := a.(olmcore.Create); ok {
			made = c.Object.(*v1alpha1.ClusterServiceVersion)
		}
	}
	require.Equal(t, "1.30.0", made.Spec.MinKubeVersion)
	require.Equal(t, "x", made.Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName)

	role := step("a.v1", "rbac.authorization.k8s.io", "v1", "Role", "r", `{"metadata":{"name":"r"},"Rules":[{"Verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
	require.Equal(t, []string{"get"}, applied(t, role, csv("a.v1")).(*rbacv1.Role).Rules[0].Verbs)
}

// TestYAMLAliasBombIsRefused quickly, as a manifest.
func TestYAMLAliasBombIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	begin := time.Now()
	in := input(plan(installing, []*v1alpha1.Step{step("", "", "v1", "ConfigMap", "x", "metadata: {name: x}\n"+bomb)}, started(time.Second)))
	require.Equal(t, failed, statusOf(in, reconcile(t, in)).Phase)
	require.Less(t, time.Since(begin), 10*time.Second)
}

// FuzzManifest: whatever stands in a step, the plan goes on or fails, nothing panics, and what is written has a name
// and a kind.
func FuzzManifest(f *testing.F) {
	for _, s := range []*v1alpha1.Step{csvStep("a.v1"), crdStep("a.v1", "v1"), roleStep("a.v1", "r")} {
		f.Add(s.Resource.Kind, s.Resource.Name, s.Resource.Manifest)
	}
	f.Add("sterServiceVers\x9c", "a.v1", `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`)
	f.Add("Service", "x", "kind: Service\nmetadata: {name: x}\n---\n{}")
	f.Add("ServiceAccount", "x", `{"metadata":{"name":"x","ownerReferences":[{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","name":"a.v1"}]}}`)
	f.Add("RoleBinding", "x", `{"metadata":{"name":"x","labels":{"a":1}},"roleRef":[],"subjects":{}}`)
	f.Add("NetworkPolicy", "x", `{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"x"}}`)
	f.Add("BundleSecret", "x", `{"kind":"ConfigMap","name":"h","namespace":"olm","catalogSourceName":"c","catalogSourceNamespace":"olm"}`)
	f.Fuzz(func(t *testing.T, kind, name, manifest string) {
		p := plan(installing, []*v1alpha1.Step{step("a.v1", "", "v1", kind, name, manifest)}, started(time.Second))
		in := input(p, with(csv("a.v1")))
		r := reconcile(t, in)
		if err := invariant.Separate(r); err != nil {
			t.Fatal(err)
		}
		if err := invariant.Recordable(r); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Actions {
			if c, ok := a.(olmcore.Create); ok {
				again := input(plan(installing, []*v1alpha1.Step{step("a.v1", "", "v1", kind, name, manifest)}, started(time.Second)), with(csv("a.v1"), seen(c.Object)))
				if got := describe(reconcile(t, again)); len(got) != 1 || got[0] != status {
					t.Fatalf("what was made is not what was wanted: %v", got)
				}
			}
		}
	})
}
