// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
)

func TestProblemsOfDescriptions(t *testing.T) {
	description := func(change func(d *v1alpha1.APIServiceDescription)) []v1alpha1.APIServiceDescription {
		d := v1alpha1.APIServiceDescription{Name: "ices", Group: "ice.example.com", Version: "v1", Kind: "Ice", DeploymentName: "cool"}
		change(&d)
		return []v1alpha1.APIServiceDescription{d}
	}
	same := func(*v1alpha1.APIServiceDescription) {}
	twice := func(change func(d *v1alpha1.APIServiceDescription)) []v1alpha1.APIServiceDescription {
		return append(description(same), description(change)...)
	}
	for name, c := range map[string]struct {
		owned []v1alpha1.APIServiceDescription
		want  string
	}{
		"none":                     {nil, ""},
		"a valid description":      {description(same), ""},
		"without a Deployment":     {description(func(d *v1alpha1.APIServiceDescription) { d.DeploymentName = "" }), ""},
		"without a resource name":  {description(func(d *v1alpha1.APIServiceDescription) { d.Name = "" }), ""},
		"two kinds of one version": {twice(func(d *v1alpha1.APIServiceDescription) { d.Name, d.Kind = "cubes", "Cube" }), ""},
		"port 0 is 443":            {twice(func(d *v1alpha1.APIServiceDescription) { d.ContainerPort = 443 }), ""},
		"another version":          {twice(func(d *v1alpha1.APIServiceDescription) { d.Version, d.DeploymentName = "v2", "other" }), ""},
		"the core group": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Group = "" }),
			`apiservicedefinitions.owned[0]: group "" belongs to Kubernetes or OLM; its APIs cannot be owned`,
		},
		"a group of Kubernetes": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Group = "apps" }),
			`apiservicedefinitions.owned[0]: group "apps" belongs to Kubernetes or OLM; its APIs cannot be owned`,
		},
		"one with a dot": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Group = "networking.k8s.io" }),
			`apiservicedefinitions.owned[0]: group "networking.k8s.io" belongs to Kubernetes or OLM; its APIs cannot be owned`,
		},
		"OLM's group": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Group = "operators.coreos.com" }),
			`apiservicedefinitions.owned[0]: group "operators.coreos.com" belongs to Kubernetes or OLM; its APIs cannot be owned`,
		},
		"one that operators serve": {description(func(d *v1alpha1.APIServiceDescription) { d.Group = "metrics.k8s.io" }), ""},
		"the group of the package server": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Group = "packages.operators.coreos.com" }), ""},
		"a group that is no domain": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Group = "Ice_" }),
			`apiservicedefinitions.owned[0]: group "Ice_" is not a DNS subdomain`,
		},
		"no version": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Version = "" }), `apiservicedefinitions.owned[0]: version "" is not a DNS label`,
		},
		"a version with a dot": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Version = "v1.2" }),
			`apiservicedefinitions.owned[0]: version "v1.2" is not a DNS label`,
		},
		"a long group": {description(func(d *v1alpha1.APIServiceDescription) { d.Group = strings.Repeat("a.", 126) + "a" }),
			"apiservicedefinitions.owned[0]: the name of the APIService has 256 characters; at most 253 are possible"},
		"a resource with a slash": {
			description(func(d *v1alpha1.APIServiceDescription) { d.Name = "a/b" }),
			`apiservicedefinitions.owned[0]: name "a/b" is not a valid resource name`,
		},
		"a negative port": {
			description(func(d *v1alpha1.APIServiceDescription) { d.ContainerPort = -1 }),
			"APIService v1.ice.example.com: containerPort -1 is outside 1-65535",
		},
		"a port too high": {
			description(func(d *v1alpha1.APIServiceDescription) { d.ContainerPort = 65536 }),
			"APIService v1.ice.example.com: containerPort 65536 is outside 1-65535",
		},
		"two ports": {twice(func(d *v1alpha1.APIServiceDescription) { d.ContainerPort = 8443 }),
			`APIService v1.ice.example.com is described twice: port 443 of deployment "cool", and port 8443 of deployment "cool"`},
		"two Deployments": {twice(func(d *v1alpha1.APIServiceDescription) { d.DeploymentName = "other" }),
			`APIService v1.ice.example.com is described twice: port 443 of deployment "cool", and port 443 of deployment "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			v := csvtest.Operator("cool.v2", 2)
			v.Spec.APIServiceDefinitions.Owned = c.owned
			require.Equal(t, c.want, internalserving.ProblemOfAPIServices(v))
		})
	}
}

// conflicts contains APIServices that may or may not be taken over, and the message about those that may not.
var conflicts = map[string]struct {
	change func(*internalserving.Clients)
	want   string
}{
	"it does not exist":     {func(s *internalserving.Clients) { s.APIServices = nil }, ""},
	"it belongs to the CSV": {func(*internalserving.Clients) {}, ""},
	"it belongs to an earlier UID": {
		live(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "before" }),
		"",
	},
	"it belongs to the replaced version":                    {ownedBy("ns", "cool.v1"), ""},
	"the replaced version is not Replacing":                 {changes(ownedBy("ns", "cool.v1"), phase(csvtest.Succeeded)), ""},
	"its version is Replacing, and is not the replaced one": {changes(ownedBy("ns", "cool.v1"), replaces("")), ""},
	"its version is Deleting":                               {changes(ownedBy("ns", "cool.v1"), replaces(""), phase(csvtest.Deleting)), ""},
	"its version exists": {changes(ownedBy("ns", "cool.v1"), replaces(""), phase(csvtest.Succeeded)),
		"APIService v1.ice.example.com belongs to ClusterServiceVersion ns/cool.v1"},
	"its version is Failed": {changes(ownedBy("ns", "cool.v1"), replaces(""), phase(csvtest.Failed)),
		"APIService v1.ice.example.com belongs to ClusterServiceVersion ns/cool.v1"},
	"its version is a copy": {changes(ownedBy("ns", "cool.v1"), func(s *internalserving.Clients) {
		s.Neighbours[0].Labels = map[string]string{"olm.copiedFrom": "x"}
	}, func(s *internalserving.Clients) {
		s.Neighbours[0].Status.Reason = v1alpha1.CSVReasonCopied
	}), "APIService v1.ice.example.com belongs to ClusterServiceVersion ns/cool.v1"},
	"the replaced version does not exist": {changes(ownedBy("ns", "cool.v1"), func(s *internalserving.Clients) { s.Neighbours = nil }), ""},
	"its version does not exist, and is not the replaced one": {
		changes(ownedBy("ns", "cool.v1"), replaces("cool.v0"), func(s *internalserving.Clients) { s.Neighbours = nil }),
		"APIService v1.ice.example.com was left behind by ClusterServiceVersion ns/cool.v1, which does not exist",
	},
	"it is that of a version of our name of another namespace": {ownedBy("other", "cool.v2"),
		"APIService v1.ice.example.com belongs to ClusterServiceVersion other/cool.v2"},
	"it is that of a version of another namespace that a version of the same name here replaces": {ownedBy("other", "cool.v1"),
		"APIService v1.ice.example.com belongs to ClusterServiceVersion other/cool.v1"},
	"it belongs to the API server": {live(func(a *apiregistrationv1.APIService) {
		a.Labels = map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}
	}),
		"APIService v1.ice.example.com exists and is not managed by an operator"},
	"it has no labels": {
		live(func(a *apiregistrationv1.APIService) { a.Labels = nil }),
		"APIService v1.ice.example.com exists and is not managed by an operator",
	},
	"its labels lack the kind": {
		live(func(a *apiregistrationv1.APIService) { delete(a.Labels, "olm.owner.kind") }),
		"APIService v1.ice.example.com exists and is not managed by an operator",
	},
	"its labels lack the owner": {
		live(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner"] = "" }),
		"APIService v1.ice.example.com exists and is not managed by an operator",
	},
	"its labels lack the namespace": {live(func(a *apiregistrationv1.APIService) { delete(a.Labels, "olm.owner.namespace") }),
		"APIService v1.ice.example.com exists and is not managed by an operator"},
	"its owner is of another kind": {live(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.kind"] = "OperatorGroup" }),
		"APIService v1.ice.example.com belongs to OperatorGroup ns/cool.v2"},
}

// changes combines several changes.
func changes(each ...func(*internalserving.Clients)) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		for _, change := range each {
			change(s)
		}
	}
}

// phase changes the phase of the previous version.
func phase(p v1alpha1.ClusterServiceVersionPhase) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) { s.Neighbours[0].Status.Phase = p }
}

func replaces(name string) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) { s.CSV.Spec.Replaces = name }
}

// TestAPIServiceOfAnotherOwnerIsNotChanged checks that an APIService with a conflict is not installed, repaired or
// updated for a certificate. All others may be taken over.
func TestAPIServiceOfAnotherOwnerIsNotChanged(t *testing.T) {
	for name, c := range conflicts {
		t.Run(name, func(t *testing.T) {
			s := changed(c.change)
			require.Equal(t, c.want, s.Conflict())
			if c.want == "" {
				_, mendable := s.Issue()
				problem, _ := s.Issue()
				require.Equal(t, problem != "", mendable)
				return
			}
			s.Certificates = trustedBundles{"cool": otherCA}
			require.Empty(t, apiWrites(s))
			require.Empty(t, s.Trust())
			require.Equal(t, internalserving.Waiting, s.Health().State, "installing it again would change nothing")
			problem, mendable := s.Issue()
			require.Equal(t, "v1.ice.example.com is unadoptable", problem)
			require.False(t, mendable)
		})
	}
}

// TestBuiltInAPIIsNotTakenOver checks a version that claims v1.apps. The APIService of the API server does not change.
func TestBuiltInAPIIsNotTakenOver(t *testing.T) {
	s := installedAPI()
	for i := range s.CSV.Spec.APIServiceDefinitions.Owned {
		s.CSV.Spec.APIServiceDefinitions.Owned[i].Group = "apps"
	}
	s.APIServices = []*apiregistrationv1.APIService{{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "v1.apps",
			UID:    "apps",
			Labels: map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"},
		},
		Spec: apiregistrationv1.APIServiceSpec{Group: "apps", Version: "v1", GroupPriorityMinimum: 17800, VersionPriority: 15},
	}}
	require.Equal(t, "APIService v1.apps exists and is not managed by an operator", s.Conflict())
	require.Empty(t, apiWrites(s))
	require.Empty(t, s.Trust())
	require.Empty(t, s.List())
}

func TestRequiredAPIServicesAreNotChanged(t *testing.T) {
	s := installedAPI()
	s.CSV.Spec.APIServiceDefinitions.Required, s.CSV.Spec.APIServiceDefinitions.Owned = s.CSV.Spec.APIServiceDefinitions.Owned, nil
	s.APIServices[0].Labels = ownerLabels("other", "ice.v1")
	require.Empty(t, s.Conflict())
	require.Empty(t, apiWrites(s))
	s.APIServices = nil
	require.Empty(t, apiWrites(s))
	require.Equal(t, internalserving.Healthy, s.Health().State)
}

func TestAPIServicesThatAreClients(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   []internalserving.Client
	}{
		"ours":                  {func(*internalserving.Clients) {}, []internalserving.Client{{Service: "cool-service", Bundle: newCA}}},
		"of the version before": {ownedBy("ns", "cool.v1"), []internalserving.Client{{Service: "cool-service", Bundle: newCA}}},
		"not made yet":          {absent, []internalserving.Client{{Service: "cool-service", Missing: true}}},
		"of another namespace":  {ownedBy("other", "cool.v2"), nil},
		"not managed":           {live(func(a *apiregistrationv1.APIService) { a.Labels = nil }), nil},
		"another Service": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "x" }), []internalserving.Client{{Service: "x", Bundle: newCA}},
		},
		"a Service elsewhere": {live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Namespace = "x" }), nil},
		"no Service":          {live(func(a *apiregistrationv1.APIService) { a.Spec.Service = nil }), nil},
		"it skips the verification of certificates": {live(func(a *apiregistrationv1.APIService) { a.Spec.InsecureSkipTLSVerify = true }), nil},
		"it is being deleted": {
			live(func(a *apiregistrationv1.APIService) { a.DeletionTimestamp = csvtest.Ago(0) }),
			[]internalserving.Client{{Service: "cool-service", Missing: true}},
		},
		"one that is not owned": {
			live(func(a *apiregistrationv1.APIService) { a.Name = "v2.ice.example.com" }),
			[]internalserving.Client{{Service: "cool-service", Missing: true}},
		},
		"without a Deployment": {func(s *internalserving.Clients) {
			s.CSV.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Group: "g", Version: "v1"}}
		}, nil},
		"a required one": {func(s *internalserving.Clients) { s.CSV.Spec.APIServiceDefinitions.Owned = nil }, nil},
		"a bundle that is empty": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = nil }), []internalserving.Client{{Service: "cool-service"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(c.change)
			require.Empty(t, cmp.Diff(c.want, s.List()))
		})
	}
}
