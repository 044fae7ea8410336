// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
)

// served returns an APIService of the API group of things.
func served(version string, change ...func(*apiregistrationv1.APIService)) *apiregistrationv1.APIService {
	a := &apiregistrationv1.APIService{ObjectMeta: ClusterMeta(version + ".example.com")}
	a.Spec.Group, a.Spec.Version = "example.com", version
	for _, f := range change {
		f(a)
	}
	return a
}

func ownedBy(kind, namespace string) func(*apiregistrationv1.APIService) {
	return func(a *apiregistrationv1.APIService) {
		a.Labels = olmcore.Owner{Kind: kind, Namespace: namespace, Name: "b.v1"}.Labels()
	}
}

func automanaged(value string) func(*apiregistrationv1.APIService) {
	return func(a *apiregistrationv1.APIService) {
		a.Labels = map[string]string{"kube-aggregator.kubernetes.io/automanaged": value}
	}
}

func inGroup(name, group string) func(*apiregistrationv1.APIService) {
	return func(a *apiregistrationv1.APIService) { a.Name, a.Spec.Group = name, group }
}

func leaving(a *apiregistrationv1.APIService) { a.DeletionTimestamp = Ago(0) }

func groupSharedWith(namespaces string) func(*apiregistrationv1.APIService) {
	return func(a *apiregistrationv1.APIService) {
		a.Annotations = map[string]string{"olmcore/api-group-shared-with": namespaces}
	}
}

const (
	notOurs   = "APIService v1beta1.example.com of the same group belongs to no operator of namespace ops. "
	shareWith = "To allow it, a cluster administrator can run: kubectl annotate --overwrite apiservice/v1beta1.example.com "
	// refusedForBoth names two APIServices, sorted.
	refusedForBoth = "CustomResourceDefinition things.example.com is not created: APIService v1.example.com of the same group belongs to " +
		"no operator of namespace ops. To allow it, a cluster administrator can run: kubectl annotate --overwrite " +
		"apiservice/v1.example.com apiservice/v1beta1.example.com olmcore/api-group-shared-with=ops"
	retrying = "retrying execution due to error: "
)

// TestPlanCreatesNoCRDInAPIGroupOfAnotherAPIService checks that a plan creates no CustomResourceDefinition in an API
// group that another operator serves with an APIService, regardless of its ServiceAccount. Clients could prefer the
// version of the definition. An operator that installs both keeps working.
func TestPlanCreatesNoCRDInAPIGroupOfAnotherAPIService(t *testing.T) {
	const refused = "CustomResourceDefinition things.example.com is not created: " + notOurs + shareWith + "olmcore/api-group-shared-with="
	theirs := func(change ...func(*apiregistrationv1.APIService)) []olmcore.Object {
		return []olmcore.Object{served("v1beta1", change...)}
	}
	for name, c := range map[string]struct {
		services []olmcore.Object
		unread   bool
		want     string // the message of the status; "" if the definition is created
	}{
		"nothing serves the group":     {},
		"an administrator's":           {services: theirs(), want: refused + "ops"},
		"of the same version":          {services: append(theirs(), served("v1")), want: refusedForBoth},
		"of another namespace":         {services: theirs(ownedBy("ClusterServiceVersion", "there")), want: refused + "ops"},
		"of this namespace":            {services: theirs(ownedBy("ClusterServiceVersion", NS))},
		"of another kind of owner":     {services: theirs(ownedBy("InstallPlan", NS)), want: refused + "ops"},
		"of definitions":               {services: theirs(automanaged("true"))},
		"of the API server itself":     {services: theirs(automanaged("onstart")), want: refused + "ops"},
		"shared with the namespace":    {services: theirs(groupSharedWith("a, ops"))},
		"shared with a similar one":    {services: theirs(groupSharedWith("a,ops2")), want: refused + "a,ops2,ops"},
		"a group by its name alone":    {services: theirs(inGroup("v1beta1.example.com", "")), want: refused + "ops"},
		"another group":                {services: theirs(inGroup("v1.sub.example.com", "sub.example.com"))},
		"one that is being deleted":    {services: theirs(leaving), want: refused + "ops"},
		"the APIServices are not read": {unread: true, want: "waiting for the APIServices of API group example.com, which were not read"},
	} {
		t.Run(name, func(t *testing.T) {
			asAccount, group := scopedTo(&corev1.ObjectReference{Namespace: NS, Name: "limited"})
			for _, change := range [][]func(*v1alpha1.InstallPlan){{Started(time.Second)}, {Started(time.Second), asAccount}} {
				plan := Plan(Installing, []*v1alpha1.Step{definitionStep(thing())}, change...)
				in := input(plan, with(CSV("a.v1", versioned("1.0.0"))), with(c.services...))
				if len(change) > 1 {
					group(&in)
					in.ServiceAccount = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: NS, Name: "limited"}}
				}
				if c.unread {
					in.APIServices = olmcore.Observed[*apiregistrationv1.APIService]{}
				}
				r := reconcile(t, in)
				switch {
				case c.want == "":
					require.Equal(t, []string{status, "create CustomResourceDefinition things.example.com (StepAbsent)"}, Describe(r))
				case c.unread:
					require.Equal(t, []string{status}, Describe(r))
					require.Equal(t, c.want, statusOf(in, r).Message)
				default:
					require.Equal(t, []string{status}, Describe(r))
					require.Equal(t, retrying+c.want, statusOf(in, r).Message)
				}
			}
		})
	}
}

// TestPlanWithServiceAccountAddsNoVersionToAPIGroupOfOthers checks that a plan with a ServiceAccount adds no served
// version to a definition of its own operator if another operator serves the API group with an APIService.
func TestPlanWithServiceAccountAddsNoVersionToAPIGroupOfOthers(t *testing.T) {
	const refused = "CustomResourceDefinition things.example.com does not get version v2: " + notOurs + shareWith +
		"olmcore/api-group-shared-with=ops"
	unserved := func(d *definition) { d.Spec.Versions[1].Served = false }
	looser := specOf(func(s *props) { s.Properties["more"] = props{Type: "string"} })
	type changes []func(*definition)
	added, hidden := changes{secondVersion(false)}, changes{secondVersion(false), unserved}
	theirs, ours := served("v1beta1"), served("v1beta1", ownedBy("ClusterServiceVersion", NS))
	for name, c := range map[string]struct {
		have, desired changes
		service       *apiregistrationv1.APIService
		confined      bool
		want          string // the message of the status; "" if the definition is updated
	}{
		"a version that is added":             {desired: added, service: theirs, confined: true, want: refused},
		"a version that is stored":            {desired: changes{secondVersion(true)}, service: theirs, confined: true, want: refused},
		"a version that is not served":        {desired: hidden, service: theirs, confined: true},
		"a version that becomes served":       {have: hidden, desired: added, service: theirs, confined: true, want: refused},
		"another schema":                      {desired: changes{looser}, service: theirs, confined: true},
		"a plan without an account":           {desired: added, service: theirs},
		"an APIService of the same namespace": {desired: added, service: ours, confined: true},
		"a group that is shared":              {desired: added, service: served("v1beta1", groupSharedWith("ops")), confined: true},
	} {
		t.Run(name, func(t *testing.T) {
			have := Installed(thing(c.have...), true)
			have.Annotations = recordedFor("ops/a.v1")
			s := definitionStep(thing(c.desired...))
			in := input(Plan(Installing, []*v1alpha1.Step{s}, Started(time.Second)), with(CSV("a.v1", versioned("1.0.0")), have, c.service))
			r := reconcile(t, in)
			if c.confined {
				in, r = limited(t, s, have, c.service)
			}
			if c.want != "" {
				require.Equal(t, []string{status}, Describe(r))
				require.Equal(t, retrying+c.want, statusOf(in, r).Message)
				in.APIServices = olmcore.Observed[*apiregistrationv1.APIService]{}
				r = reconcile(t, in)
				require.Equal(t, "waiting for the APIServices of API group example.com, which were not read", statusOf(in, r).Message)
				return
			}
			require.Equal(t, []string{"update CustomResourceDefinition things.example.com (StepDiffers)"}, Describe(r))
		})
	}
}
