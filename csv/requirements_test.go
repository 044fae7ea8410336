// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

type requirement = v1alpha1.RequirementStatus

// OLM's cases: a CRD version that is not there, or not served: NotPresent; NamesAccepted or Established False:
// PresentNotAvailable.
func TestRequirements(t *testing.T) {
	crd := func(status, message, uid string) []requirement {
		return []requirement{{
			Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "cools.example.com",
			Status: v1alpha1.StatusReason(status), Message: message, UUID: uid,
		}}
	}
	apiService := func(status, message, uid string) []requirement {
		return []requirement{{
			Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: "v1.api.example.com",
			Status: v1alpha1.StatusReason(status), Message: message, UUID: uid,
		}}
	}
	native := func(status, message string) []requirement {
		return []requirement{{Group: "policy", Version: "v1", Kind: "Eviction", Name: "v1.policy", Status: v1alpha1.StatusReason(status), Message: message}}
	}
	established := func(i int, to apiextensionsv1.ConditionStatus) func(*csv.Input) {
		return func(in *csv.Input) { in.CustomResourceDefinitions.Items[0].Status.Conditions[i].Status = to }
	}
	alongside := func(value string) func(*csv.Input) {
		return func(in *csv.Input) {
			predecessorOf(in, replacing)
			in.CustomResourceDefinitions.Items[0].Annotations = map[string]string{"operatorframework.io/installed-alongside-1": value}
		}
	}
	requires := func(in *csv.Input) {
		in.ClusterServiceVersion.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{
			{Name: "things", Group: "api.example.com", Version: "v1", Kind: "Thing"},
		}
		in.APIServices = olmcore.Found[*apiregistrationv1.APIService]()
	}
	offers := func(in *csv.Input, status apiregistrationv1.ConditionStatus) {
		requires(in)
		in.APIServices.Items = []*apiregistrationv1.APIService{{
			ObjectMeta: metav1.ObjectMeta{Name: "v1.api.example.com", UID: "api"},
			Status:     apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status}}},
		}}
	}
	const present = "CRD is present and Established condition is true"
	for name, c := range map[string]struct {
		kind   string
		change func(in *csv.Input)
		want   []requirement
	}{
		"a CRD is there":                 {"CustomResourceDefinition", func(*csv.Input) {}, crd("Present", present, "crd")},
		"a CRD is absent":                {"CustomResourceDefinition", func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }, crd("NotPresent", "CRD is not present", "")},
		"a CRD is not established":       {"CustomResourceDefinition", established(1, "False"), crd("PresentNotAvailable", "CRD is present but the Established condition is False (not available)", "")},
		"a CRD's names are not accepted": {"CustomResourceDefinition", established(0, "False"), crd("PresentNotAvailable", "CRD is present but the Established condition is False (not available)", "")},
		"a CRD is being deleted": {"CustomResourceDefinition", func(in *csv.Input) {
			in.CustomResourceDefinitions.Items[0].DeletionTimestamp = ago(0)
		}, crd("PresentNotAvailable", "CRD is being deleted", "")},
		"a version is not served": {"CustomResourceDefinition", func(in *csv.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Versions[0].Served = false
		}, crd("NotPresent", "CRD version not served", "")},
		"one of two described versions is not served": {"CustomResourceDefinition", func(in *csv.Input) {
			d := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
			d.Owned = append(d.Owned, v1alpha1.CRDDescription{Name: "cools.example.com", Version: "v1alpha1", Kind: "Cool"})
			in.ClusterServiceVersion.Labels["olm.api.8a4df0d1b0cf5f4a"] = "provided"
		}, crd("NotPresent", "CRD version not served: v1alpha1", "")},
		"the kind is another": {"CustomResourceDefinition", func(in *csv.Input) {
			in.CustomResourceDefinitions.Items[0].Spec.Names.Kind = "Hot"
		}, crd("Present", present, "crd")},
		"a CRD came with the version before":   {"CustomResourceDefinition", alongside("ns/cool.v0"), crd("PresentNotSatisfied", "CRD installed alongside other CSV(s): cool.v0", "")},
		"a CRD came with this version":         {"CustomResourceDefinition", alongside("ns/cool.v1"), crd("Present", present, "crd")},
		"a CRD came with another namespace's":  {"CustomResourceDefinition", alongside("other/cool.v0"), crd("Present", present, "crd")},
		"a CRD came with one that is gone":     {"CustomResourceDefinition", alongside("ns/gone"), crd("Present", present, "crd")},
		"a required APIService is not found":   {"APIService", requires, apiService("NotPresent", "APIService v1.api.example.com not found", "")},
		"a required APIService is unavailable": {"APIService", func(in *csv.Input) { offers(in, "False") }, apiService("NotPresent", "APIService v1.api.example.com is not available", "")},
		"a required APIService is available":   {"APIService", func(in *csv.Input) { offers(in, "True") }, apiService("Present", "", "api")},
		"a required APIService's kind is not served": {"APIService", func(in *csv.Input) {
			offers(in, "True")
			in.ServedAPIs = olmcore.Found[schema.GroupVersionKind]()
		}, apiService("NotPresent", "kind Thing is not served by v1.api.example.com", "")},
		"an owned APIService has its Deployment": {"APIService", func(in *csv.Input) {
			requires(in)
			d := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
			d.Owned, d.Required = d.Required, nil
			d.Owned[0].DeploymentName = "cool"
		}, apiService("DeploymentFound", "", "")},
		"an owned APIService has no Deployment": {"APIService", func(in *csv.Input) {
			requires(in)
			d := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
			d.Owned, d.Required = d.Required, nil
		}, apiService("DeploymentNotFound", "", "")},
		"a native API is served": {"Eviction", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v1", Kind: "Eviction"}}
			in.ServedAPIs = olmcore.Found(schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"})
		}, native("Present", "Native API exists")},
		"a native API is not served": {"Eviction", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v1", Kind: "Eviction"}}
			in.ServedAPIs = olmcore.Found[schema.GroupVersionKind]()
		}, native("NotPresent", "Native API does not exist")},
		"nobody asked which APIs are served": {"Eviction", func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "policy", Version: "v1", Kind: "Eviction"}}
		}, native("NotPresent", "API discovery for policy/v1 failed")},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsUnknown", "requirements not yet checked")
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions = nil
			c.change(&in)
			in = labelled(t, in)
			var got []requirement
			for _, r := range assess(t, in).Requirements {
				if r.Kind == c.kind {
					got = append(got, r)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
			met := c.want[0].Status == "Present" || c.want[0].Status == "DeploymentFound"
			hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "", 0)
			require.Equal(t, !met, assess(t, in).Reason == "RequirementsNotMet", "a Succeeded CSV is judged the same")
		})
	}
}

// labelled lets Reconcile put the API labels on that a changed spec needs, and into the OperatorGroup's annotation.
func labelled(t *testing.T, in csv.Input) csv.Input {
	t.Helper()
	for range 2 {
		out := reconciled(t, in)
		for _, a := range out.Actions {
			if u, ok := metadataOf(a); ok {
				in.ClusterServiceVersion = u
			}
			if u, ok := a.(olmcore.Update); ok && u.Target.Kind == "OperatorGroup" {
				in.OperatorGroups = olmcore.Found(u.After.(*operatorsv1.OperatorGroup))
			}
		}
	}
	return in
}

// OLM's cases: minimum 999.999.999: PresentNotSatisfied; a minimum that is no version: parsing error.
func TestMinimumKubernetesVersion(t *testing.T) {
	for name, c := range map[string]struct{ minimum, server, status, message string }{
		"older is fine":        {"1.20.0", "v1.36.2", "Present", "CSV minKubeVersion (1.20.0) less than server version (v1.36.2)"},
		"equal is fine":        {"1.36.2", "v1.36.2", "Present", "CSV minKubeVersion (1.36.2) less than server version (v1.36.2)"},
		"newer is not":         {"999.999.999", "v1.36.2", "PresentNotSatisfied", "CSV version requirement not met: minKubeVersion (999.999.999) > server version (1.36.2)"},
		"a vendor's server":    {"1.20.0", "v1.27.10+k3s2", "Present", "CSV minKubeVersion (1.20.0) less than server version (v1.27.10+k3s2)"},
		"a pre-release server": {"1.27.0", "v1.27.0-gke.100", "Present", "CSV minKubeVersion (1.27.0) less than server version (v1.27.0-gke.100)"},
		"a minimum with -0":    {"1.19.0-0", "v1.19.0", "Present", "CSV minKubeVersion (1.19.0-0) less than server version (v1.19.0)"},
		"two parts":            {"1.16", "v1.36.2", "Present", "CSV minKubeVersion (1.16) less than server version (v1.36.2)"},
		"no version at all":    {"a.b.c", "v1.36.2", "PresentNotSatisfied", "CSV version parsing error"},
		"an unknown server":    {"1.20.0", "", "PresentNotSatisfied", "Server version discovery error"},
		"an unreadable server": {"1.20.0", "main", "PresentNotSatisfied", "Server version parsing error"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsUnknown", "")
			in.ClusterServiceVersion.Spec.MinKubeVersion, in.KubernetesVersion = c.minimum, c.server
			r := assess(t, in).Requirements[0]
			require.Equal(t, requirement{
				Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion", Name: "cool.v1",
				Status: v1alpha1.StatusReason(c.status), Message: c.message,
			}, r)
			hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "", 0)
			require.Equal(t, c.status != "Present", assess(t, in).Reason == "RequirementsNotMet")
		})
	}
}

// TestACRDOfAnotherKindIsNamedOnce, when the CSV is installed: OLM compares name and version alone, so it is no
// obstacle.
func TestACRDOfAnotherKindIsNamedOnce(t *testing.T) {
	in := input(installReady, "AllRequirementsMet", "all requirements found, attempting install")
	deploy(t, &in)
	in.CustomResourceDefinitions.Items[0].Spec.Names.Kind = "Hot"
	out := reconciled(t, in)
	require.Equal(t, []olmcore.Diagnostic{{
		Severity: olmcore.Warning, Reason: csv.ReasonCRDKindMismatch, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(),
		Path: "spec.customresourcedefinitions.owned[0].kind", Message: "the kind of CRD cools.example.com is Hot, not Cool",
	}}, out.Diagnostics)
	require.Len(t, out.Transitions, 1)
	require.Equal(t, "Installing", out.Transitions[0].To)

	hold(in.ClusterServiceVersion, succeeded, "InstallSucceeded", "install strategy completed with no errors", time.Hour)
	check(t, in, olmcore.Result{})
}
