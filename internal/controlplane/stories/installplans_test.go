// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
)

// alphaWith is version 1.0.0 of an operator with changes of its bundle.
func alphaWith(changes ...change) *pack {
	return pkg("alpha").channel("stable", "alpha.v1.0.0").bundle("alpha.v1.0.0", changes...)
}

func TestInstallPlansMakeWhatABundleHolds(t *testing.T) {
	t.Parallel()
	tell(t, "the version first, then what it needs to run", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		var kinds []string
		for _, line := range steps(s.plan("alpha")) {
			kind, _, _ := strings.Cut(line, " ")
			kinds = append(kinds, kind+line[strings.LastIndex(line, ":"):])
		}
		require.Equal(s, []string{"ClusterServiceVersion: Created", "ServiceAccount: Created", "Role: Created", "RoleBinding: Created"}, kinds)
		says[*v1alpha1.InstallPlan](s, s.plan("alpha").Name, "Installed", "True")
		require.Equal(s, []string{"community"}, s.plan("alpha").Status.CatalogSources)
	})
	kind := func(name, manifest string, look func(s *story) olmcore.Object) {
		tell(t, "a "+name+", which goes with the version", func(s *story) {
			s.group()
			s.catalog("community", alphaWith(brings(manifest)))
			s.subscribe("alpha")
			s.installed("alpha", "alpha.v1.0.0")
			s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
			o := look(s)
			require.NotEmpty(s, o.GetName())
			require.Equal(s, "true", o.GetLabels()[olmcore.LabelManaged])
			require.Contains(s, strings.Join(steps(s.plan("alpha")), "\n"), fmt.Sprintf("%s: Created", o.GetName()))
			remove[*v1alpha1.Subscription](s, "alpha")
			remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
			s.until("it is gone", func() bool { return look(s).GetName() == "" })
		})
	}
	kind("ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`,
		func(s *story) olmcore.Object { return get[*corev1.ConfigMap](s, "extra") })
	kind("Secret", `{apiVersion: v1, kind: Secret, metadata: {name: extra}, stringData: {a: b}}`,
		func(s *story) olmcore.Object { return get[*corev1.Secret](s, "extra") })
	kind("Service", `{apiVersion: v1, kind: Service, metadata: {name: extra}, spec: {selector: {app: alpha}, ports: [{port: 80}]}}`,
		func(s *story) olmcore.Object { return get[*corev1.Service](s, "extra") })
	kind("ServiceAccount", `{apiVersion: v1, kind: ServiceAccount, metadata: {name: extra}}`,
		func(s *story) olmcore.Object { return get[*corev1.ServiceAccount](s, "extra") })
	kind("Role", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: extra}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`,
		func(s *story) olmcore.Object { return get[*rbacv1.Role](s, "extra") })
	kind("RoleBinding", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: extra}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: alpha}]
`, func(s *story) olmcore.Object { return get[*rbacv1.RoleBinding](s, "extra") })
	kind("ClusterRole", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-extra}, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}`,
		func(s *story) olmcore.Object { return getIn[*rbacv1.ClusterRole](s, "", "NS-extra") })
	kind("ClusterRoleBinding", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NS-extra}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: alpha, namespace: NS}]
`, func(s *story) olmcore.Object { return getIn[*rbacv1.ClusterRoleBinding](s, "", "NS-extra") })
	kind("NetworkPolicy", `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: extra}, spec: {podSelector: {}, policyTypes: [Ingress]}}`,
		func(s *story) olmcore.Object { return get[*networkingv1.NetworkPolicy](s, "extra") })
	kind("PodDisruptionBudget", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: extra}, spec: {minAvailable: 1, selector: {matchLabels: {app: alpha}}}}`,
		func(s *story) olmcore.Object { return get[*policyv1.PodDisruptionBudget](s, "extra") })
	kind("PriorityClass", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS-extra}, value: 1000}`,
		func(s *story) olmcore.Object {
			return live(s, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "", "NS-extra")
		})
	tell(t, "a CustomResourceDefinition, which stays with its resources when the version goes", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		crd := func() *apiextensionsv1.CustomResourceDefinition {
			return getIn[*apiextensionsv1.CustomResourceDefinition](s, "", "widgets.NS.example.com")
		}
		require.Contains(s, steps(s.plan("alpha")), s.text("CustomResourceDefinition widgets.NS.example.com: Created"))
		s.given(`{apiVersion: NS.example.com/v1, kind: Widget, metadata: {name: one}}`)
		remove[*v1alpha1.Subscription](s, "alpha")
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.until("the version is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
		s.atRest()
		require.NotEmpty(s, crd().Name)
	})
	tell(t, "an object of a kind that the bundle defines itself", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(owns("ServiceMonitor"), brings(`{apiVersion: NS.example.com/v1, kind: ServiceMonitor, metadata: {name: extra}}`)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		require.Contains(s, steps(s.plan("alpha")), "ServiceMonitor extra: Created")
	})
	tell(t, "what is there already, and is as the bundle wants it, is used", func(s *story) {
		s.group()
		s.given(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`)
		s.catalog("community", alphaWith(brings(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		require.Contains(s, steps(s.plan("alpha")), "ConfigMap extra: Present")
		require.Empty(s, get[*corev1.ConfigMap](s, "extra").OwnerReferences)
	})
	tell(t, "what OLM manages and differs is made as the bundle wants it", func(s *story) {
		s.group()
		s.given(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra, labels: {olm.managed: "true", team: one}}, data: {a: old}}`)
		s.catalog("community", alphaWith(brings(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		require.Equal(s, map[string]string{"a": "b"}, get[*corev1.ConfigMap](s, "extra").Data)
		require.Equal(s, "one", get[*corev1.ConfigMap](s, "extra").Labels["team"])
	})
	tell(t, "a plan that is complete makes nothing anew that a person deletes", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(brings(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`)))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
		remove[*corev1.ConfigMap](s, "extra")
		s.until("it is gone", func() bool { return !exists[*corev1.ConfigMap](s, "extra") })
		s.atRest()
		require.False(s, exists[*corev1.ConfigMap](s, "extra"))
		require.Equal(s, v1alpha1.InstallPlanPhaseComplete, s.plan("alpha").Status.Phase)
	})
}

// failed waits until the plan of alpha has failed for a reason, and the Subscription says so too.
func failed(s *story, message string) {
	s.Helper()
	s.planned("alpha", v1alpha1.InstallPlanPhaseFailed, "alpha.v1.0.0")
	says[*v1alpha1.InstallPlan](s, s.plan("alpha").Name, "Installed", "False InstallComponentFailed: "+message)
	says[*v1alpha1.Subscription](s, "alpha", "InstallPlanFailed", "True InstallComponentFailed: "+message)
}

// sizesAreNumbers makes the schema of the operator's definition stricter.
func sizesAreNumbers(_ *story, b *bundle) {
	for _, o := range b.objects {
		if crd, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
			crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}},
			}
		}
	}
}

func TestInstallPlansFail(t *testing.T) {
	t.Parallel()
	begin := func(s *story, changes ...change) {
		s.group()
		s.catalog("community", alphaWith(changes...))
		s.subscribe("alpha")
	}
	tell(t, "when an API is not served, until it is", func(s *story) {
		begin(s, brings(`{apiVersion: NS.example.com/v1, kind: ServiceMonitor, metadata: {name: alpha}}`))
		failed(s, "api-server resource not found installing ServiceMonitor alpha: GroupVersionKind NS.example.com/v1, Kind=ServiceMonitor not found on the cluster. "+
			"This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.")
		require.Empty(s, list[*v1alpha1.ClusterServiceVersion](s), "nothing of it was begun")
		s.given(s.crd("ServiceMonitor"))
		s.installed("alpha", "alpha.v1.0.0")
		says[*v1alpha1.Subscription](s, "alpha", "InstallPlanFailed", "")
	})
	tell(t, "when a kind is none that a bundle may hold", func(s *story) {
		begin(s, brings(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: alpha}}`))
		failed(s, "the InstallPlan contains invalid data: CronJob alpha is of a kind that bundles may not contain")
		require.Contains(s, steps(s.plan("alpha")), "CronJob alpha: UnsupportedResource")
	})
	tell(t, "when an object of that name is not OLM's, until it is handed over", func(s *story) {
		s.given(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: mine}}`)
		begin(s, brings(`{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}, data: {a: b}}`))
		failed(s, "ConfigMap extra exists, is not managed by OLM, and differs from the step in data; label it olm.managed=true to hand it over, or remove it")
		edit(s, "extra", func(o *corev1.ConfigMap) { o.Labels = map[string]string{"olm.managed": "true"} })
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, map[string]string{"a": "b"}, get[*corev1.ConfigMap](s, "extra").Data)
	})
	tell(t, "when the API server refuses an object", func(s *story) {
		begin(s, brings(`{apiVersion: v1, kind: Service, metadata: {name: extra}, spec: {ports: [{port: 70000, targetPort: 80}]}}`))
		failed(s, `error updating service: extra: Service "extra" is invalid: spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive`)
	})
	tell(t, "when a version that is stored would be taken from a CustomResourceDefinition", func(s *story) {
		s.given(strings.NewReplacer("- name: v1", "- name: v1alpha1", "metadata: {", `metadata: {labels: {olm.managed: "true"}, `).Replace(s.crd("Widget")))
		begin(s, owns("Widget"))
		failed(s, `risk of data loss updating "widgets.NS.example.com": new CRD removes version v1alpha1 that is listed as a stored version on the existing CRD`)
	})
	tell(t, "when custom resources would not fit a new schema, until they do", func(s *story) {
		s.group()
		s.catalog("community", oneVersion().bundle("alpha.v1.0.0", owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.given(`{apiVersion: NS.example.com/v1, kind: Widget, metadata: {name: one}, spec: {size: big}}`)
		s.publish("community", twoVersions().bundle("alpha.v1.0.0", owns("Widget")).bundle("alpha.v1.1.0", owns("Widget"), sizesAreNumbers))
		s.planned("alpha", v1alpha1.InstallPlanPhaseFailed, "alpha.v1.1.0")
		says[*v1alpha1.InstallPlan](s, s.plan("alpha").Name, "Installed", `False InstallComponentFailed: error validating existing CRs against new CRD's schema for "widgets.NS.example.com": `+
			`error validating NS.example.com/v1, Kind=Widget "NS/one": updated validation is too restrictive: [].spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`)
		require.False(s, exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.1.0"), "nothing of it was begun")
		s.succeeds("alpha.v1.0.0")
		fits := s.widget().DeepCopyObject().(*unstructured.Unstructured)
		fits.Object["spec"] = map[string]any{"size": int64(3)}
		require.NoError(s, world.user.Do(s.Context(), olmcore.UpdateOf(s.widget(), fits, byUser)))
		s.installed("alpha", "alpha.v1.1.0")
	})
	tell(t, "and one that failed and is deleted is made anew", func(s *story) {
		begin(s, brings(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: alpha}}`))
		failed(s, "the InstallPlan contains invalid data: CronJob alpha is of a kind that bundles may not contain")
		s.serve("community", alphaWith())
		remove[*v1alpha1.InstallPlan](s, s.plan("alpha").Name)
		s.touch("community")
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "and one that is retried says why", func(s *story) {
		begin(s, brings(`{apiVersion: NS.example.com/v1, kind: ServiceMonitor, metadata: {name: alpha}}`))
		s.until("it says that it is retried", func() bool {
			return strings.HasPrefix(s.plan("alpha").Status.Message, "retrying execution due to error: api-server resource not found installing ServiceMonitor alpha") ||
				s.plan("alpha").Status.Phase == v1alpha1.InstallPlanPhaseFailed
		})
		eventually(s, "each stage was reported", func() []string { return s.transitions("Subscription", "alpha", "InstallPlan") },
			[]string{"NotYetReconciled", "Installing", "Failed"})
	})
}

func TestInstallPlansInstallWhatThenFails(t *testing.T) {
	t.Parallel()
	status := func(s *story) func() string {
		return func() string {
			status := s.csv("alpha.v1.0.0").Status
			return string(status.Phase) + " " + string(status.Reason) + ": " + status.Message
		}
	}
	begin := func(s *story, changes ...change) {
		s.group()
		s.catalog("community", alphaWith(changes...))
		s.subscribe("alpha")
		s.planned("alpha", v1alpha1.InstallPlanPhaseComplete, "alpha.v1.0.0")
	}
	tell(t, "a version that does not support what the OperatorGroup asks for", func(s *story) {
		begin(s, supports(v1alpha1.InstallModeTypeAllNamespaces))
		eventually(s, "the version has failed", status(s), "Failed UnsupportedOperatorGroup: OwnNamespace InstallModeType not supported, cannot configure to watch own namespace")
		require.Equal(s, v1alpha1.SubscriptionState(v1alpha1.SubscriptionStateAtLatest), s.subscription("alpha").Status.State)
	})
	tell(t, "a version whose image cannot be pulled, until it can", func(s *story) {
		s.imageIs("alpha:v1.0.0", noPull())
		begin(s)
		s.until("the version waits for its Deployment", func() bool { return s.csv("alpha.v1.0.0").Status.Phase == v1alpha1.CSVPhaseInstalling })
		s.imageIs("alpha:v1.0.0", controlplane.Image{})
		s.installed("alpha", "alpha.v1.0.0")
	})
	tell(t, "a version that requires an API that nothing in the namespace provides", func(s *story) {
		begin(s, edited(func(csv *v1alpha1.ClusterServiceVersion) {
			csv.Spec.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "gadgets.elsewhere.example.com", Version: "v1", Kind: "Gadget"}}
		}))
		eventually(s, "the version waits", status(s), "Pending RequirementsNotMet: one or more requirements couldn't be found")
	})
	tell(t, "a version that needs a newer Kubernetes", func(s *story) {
		begin(s, edited(func(csv *v1alpha1.ClusterServiceVersion) { csv.Spec.MinKubeVersion = "9.0.0" }))
		eventually(s, "the version waits", status(s), "Pending RequirementsNotMet: one or more requirements couldn't be found")
	})
}

func TestInstallPlansAreKeptInOrder(t *testing.T) {
	t.Parallel()
	tell(t, "of the plans that are complete the newest five stay", func(s *story) {
		s.group()
		s.catalog("community", pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v2.0.0 replaces alpha.v1.0.0", "alpha.v3.0.0 replaces alpha.v2.0.0",
			"alpha.v4.0.0 replaces alpha.v3.0.0", "alpha.v5.0.0 replaces alpha.v4.0.0", "alpha.v6.0.0 replaces alpha.v5.0.0"))
		s.subscribe("alpha", startingAt("alpha.v1.0.0"))
		s.until("it is halfway", func() bool { return exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v4.0.0") })
		s.installed("alpha", "alpha.v6.0.0")
		s.until("five plans are left", func() bool { return len(list[*v1alpha1.InstallPlan](s)) == 5 })
		require.NotContains(s, went(s), "alpha.v1.0.0")
		require.Contains(s, went(s), "alpha.v6.0.0")
	})
	tell(t, "a plan is owned by its Subscriptions, and goes with the last of them", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		require.Equal(s, []string{"alpha"}, owners(s.plan("alpha")))
		remove[*v1alpha1.Subscription](s, "alpha")
		s.until("the plan is gone", func() bool { return len(list[*v1alpha1.InstallPlan](s)) == 0 })
	})
	tell(t, "what a person writes on a plan stays, and approves nothing", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha", manual)
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		edit(s, s.plan("alpha").Name, func(p *v1alpha1.InstallPlan) { p.Labels["team"] = "one" })
		s.atRest()
		s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
		require.Equal(s, "one", s.plan("alpha").Labels["team"])
	})
}
