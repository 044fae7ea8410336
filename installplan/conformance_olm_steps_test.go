// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// written is the step of a manifest in YAML, as a bundle has it.
func written(t testing.TB, resolving, manifest string) *v1alpha1.Step {
	t.Helper()
	o := parsed(t, manifest)
	gvk := olmcore.GVKOf(o)
	if gvk.Kind == "Secret" {
		gvk.Kind = "BundleSecret"
	}
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	return step(resolving, gvk.Group, gvk.Version, gvk.Kind, o.GetName(), string(data))
}

func parsed(t testing.TB, manifest string) olmcore.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	o, err := olmcore.Decode(data)
	require.NoError(t, err)
	return o
}

// executed lets a plan of these steps run over objects that are there, and
// returns the plan in the end.
func executed(t testing.TB, c *fake.Cluster, name string, steps ...*v1alpha1.Step) *v1alpha1.InstallPlan {
	t.Helper()
	p := plan(installing, steps, func(p *v1alpha1.InstallPlan) { p.Name, p.UID = name, "" })
	require.NoError(t, c.Load(p))
	require.NoError(t, (&fake.Driver{Cluster: c, Controllers: []fake.Controller{plans(installplan.Config{})}}).RunFor(t.Context(), 2*time.Minute))
	return fake.Find[*v1alpha1.InstallPlan](c, ns, name)
}

const versionText = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: a.v1}
spec: {displayName: Cool, install: {strategy: deployment}}
`

// TestOLMsPlansAreExecuted: the steps that OLM's tests execute, on top of what is
// there. Objects are compared whole.
//
// OLM's cases: a Service listed before its version: both are made; an account, a
// ConfigMap and a Secret of the bundle are made; one account in two steps: merged, its
// secrets stay; a PrometheusRule gets namespace, label and owner; a Service that has
// an address is updated; budgets, priorities, autoscalers and network policies.
func TestOLMsPlansAreExecuted(t *testing.T) {
	const (
		service    = `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, ports: [{port: 80}]}}`
		account    = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}`
		autoscaler = `{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {name: vpa}, spec: {targetRef: {kind: Deployment, name: d}}}`
		crd        = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: verticalpodautoscalers.autoscaling.k8s.io},
			spec: {group: autoscaling.k8s.io, scope: Namespaced, names: {kind: VerticalPodAutoscaler, plural: verticalpodautoscalers},
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	)
	withTokens := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x", Labels: map[string]string{"olm.managed": "true"}},
		Secrets: []corev1.ObjectReference{{Name: "token"}}}
	for name, c := range map[string]struct {
		existing []olmcore.Object
		steps    []*v1alpha1.Step
		want     []string
	}{
		"a version alone": {steps: []*v1alpha1.Step{written(t, "a.v1", versionText)}},
		"a Service, then its version": {
			steps: []*v1alpha1.Step{written(t, "a.v1", service), written(t, "a.v1", versionText)},
			want: []string{
				`{apiVersion: operators.coreos.com/v1alpha1, kind: ClusterServiceVersion, metadata: {namespace: ops, name: a.v1, labels: {olm.managed: "true"}},
					spec: {displayName: Cool, install: {strategy: deployment, spec: {deployments: null}}, apiservicedefinitions: {}, cleanup: {enabled: false}, customresourcedefinitions: {}, provider: {}, version: 0.0.0}}`,
				`{apiVersion: v1, kind: Service, metadata: {namespace: ops, name: s, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]},
					spec: {type: ClusterIP, clusterIP: None, clusterIPs: [None], internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, protocol: TCP, targetPort: 80}], sessionAffinity: None}}`,
			},
		},
		"an account, a ConfigMap and a Secret": {
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", account),
				written(t, "a.v1", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}`),
				written(t, "a.v1", `{apiVersion: v1, kind: Secret, metadata: {name: b}, type: Opaque, data: {a: Yg==}}`)},
			want: []string{
				`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ops, name: x, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}}`,
				`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ops, name: c, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, data: {a: b}}`,
				`{apiVersion: v1, kind: Secret, metadata: {namespace: ops, name: b, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, type: Opaque, data: {a: Yg==}}`,
			},
		},
		"an account twice": {existing: []olmcore.Object{withTokens},
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", account), written(t, "a.v1", account)},
			want:  []string{`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ops, name: x, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, secrets: [{name: token}]}`},
		},
		"an account twice, with other fields": {existing: []olmcore.Object{withTokens},
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", account),
				written(t, "a.v1", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, annotations: {second: "yes"}}, automountServiceAccountToken: false}`)},
			want: []string{`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ops, name: x, annotations: {second: "yes"}, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]},
				automountServiceAccountToken: false, secrets: [{name: token}]}`},
		},
		"a PrometheusRule": {existing: monitoring(),
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", `{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: r}}`)},
			want:  []string{`{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {namespace: ops, name: r, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}}`},
		},
		"budgets, priorities, autoscalers and policies": {
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", crd), written(t, "a.v1", autoscaler),
				written(t, "a.v1", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: pdb}, spec: {minAvailable: 1}}`),
				written(t, "a.v1", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p}, value: 7}`),
				written(t, "a.v1", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}, spec: {podSelector: {}, policyTypes: [Ingress]}}`)},
			want: []string{
				`{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {namespace: ops, name: vpa, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, spec: {targetRef: {kind: Deployment, name: d}}}`,
				`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: ops, name: pdb, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, spec: {minAvailable: 1}}`,
				`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p, labels: {olm.managed: "true", olm.owner: a.v1, olm.owner.kind: ClusterServiceVersion, olm.owner.namespace: ops, olm.owner.uid: some}}, value: 7}`,
				`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: ops, name: np, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]}, spec: {podSelector: {}, policyTypes: [Ingress]}}`,
			},
		},
		"a Service that has an address": {
			existing: []olmcore.Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s", Labels: map[string]string{"olm.managed": "true"}},
				Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.9", Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 8080}}}}},
			steps: []*v1alpha1.Step{written(t, "a.v1", versionText), written(t, "a.v1", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {type: ClusterIP, ports: [{port: 80}]}}`)},
			want: []string{`{apiVersion: v1, kind: Service, metadata: {namespace: ops, name: s, labels: {olm.managed: "true"}, owners: [ClusterServiceVersion a.v1]},
				spec: {type: ClusterIP, clusterIP: 10.0.0.9, clusterIPs: [10.0.0.9], internalTrafficPolicy: Cluster, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80, protocol: TCP, targetPort: 80}], sessionAffinity: None}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := world(t, c.existing...)
			p := executed(t, cluster, "install-x", c.steps...)
			require.Equal(t, complete, p.Status.Phase, p.Status.Message)
			var want, got strings.Builder
			for _, text := range c.want {
				expected := parsed(t, text)
				want.WriteString(normal(t, text) + "---\n")
				for _, o := range cluster.Objects() {
					if olmcore.KeyOf(o) == olmcore.KeyOf(expected) {
						got.WriteString(normal(t, shown(t, cluster, o)) + "---\n")
					}
				}
			}
			if diff := cmp.Diff(want.String(), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWhichKindsAPlanMayHave besides those that are applied in a way of their own:
// these, of whatever group, and no others.
//
// OLM's case: which kinds are supported.
func TestWhichKindsAPlanMayHave(t *testing.T) {
	supported := map[string]bool{
		"PrometheusRule": true, "ServiceMonitor": true, "PodDisruptionBudget": true, "PriorityClass": true, "VerticalPodAutoscaler": true,
		"ConsoleYAMLSample": true, "ConsoleQuickStart": true, "ConsoleCLIDownload": true, "ConsoleLink": true, "ConsolePlugin": true, "NetworkPolicy": true,
		"Deployment": false, "Pod": false, "Job": false, "Namespace": false, "Ingress": false, "CatalogSource": false, "OperatorGroup": false,
		"MutatingWebhookConfiguration": false, "Thing": false, "prometheusrule": false,
	}
	for kind, want := range supported {
		t.Run(kind, func(t *testing.T) {
			crd := crdObject("v1")
			crd.Name, crd.Spec.Names = "plural.example.com", apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: "plural"}
			in := input(plan(installing, []*v1alpha1.Step{step("", "example.com", "v1", kind, "x", `{"apiVersion":"example.com/v1","kind":"`+kind+`","metadata":{"name":"x"}}`)},
				started(time.Second)), with(installed(crd, true)))
			r := reconcile(t, in)
			if want {
				require.Equal(t, []string{status, "create " + kind + " ops/x (StepAbsent)"}, describe(r))
				return
			}
			require.Equal(t, []string{status}, describe(r))
			require.Equal(t, v1alpha1.StepStatusUnsupportedResource, statusOf(in, r).Plan[0].Status)
			require.Equal(t, "the InstallPlan contains invalid data", statusOf(in, r).Message)
		})
	}
}
