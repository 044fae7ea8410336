// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// made returns the APIService that is created for the fixture.
func createdAPI() *apiregistrationv1.APIService {
	labels := ownerLabels("ns", "cool.v2")
	labels["olm.owner.uid"] = "uid-cool.v2"
	return &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: apiName, Labels: labels},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "ice.example.com", Version: "v1", GroupPriorityMinimum: 2000, VersionPriority: 15, CABundle: newCA,
			Service: &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "cool-service", Port: new(int32(8443))},
		},
	}
}

func absent(s *internalserving.Clients) { s.APIServices = nil }

func withAccount(s *internalserving.Clients) {
	s.Account = &corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "ns", Name: "installer"}
}

func TestInstallCreatesAPIService(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   func(*apiregistrationv1.APIService)
	}{
		"as described":                   {absent, func(*apiregistrationv1.APIService) {}},
		"under the account of the group": {changes(absent, withAccount), func(*apiregistrationv1.APIService) {}},
		"with the annotations of the Subscription": {changes(absent, func(s *internalserving.Clients) {
			s.Config = &v1alpha1.SubscriptionConfig{Annotations: map[string]string{"team": "ice"}}
		}), func(a *apiregistrationv1.APIService) { a.Annotations = map[string]string{"team": "ice"} }},
		"with the component labels of the version": {changes(absent, func(s *internalserving.Clients) {
			s.CSV.Labels["operators.coreos.com/cool.ns"] = ""
		}), func(a *apiregistrationv1.APIService) { a.Labels["operators.coreos.com/cool.ns"] = "" }},
		"at port 443 where none is described": {changes(absent, func(s *internalserving.Clients) {
			for i := range s.CSV.Spec.APIServiceDefinitions.Owned {
				s.CSV.Spec.APIServiceDefinitions.Owned[i].ContainerPort = 0
			}
		}), func(a *apiregistrationv1.APIService) { a.Spec.Service.Port = new(int32(443)) }},
		"with dashes for the dots of a Deployment": {changes(absent, func(s *internalserving.Clients) {
			for i := range s.CSV.Spec.APIServiceDefinitions.Owned {
				s.CSV.Spec.APIServiceDefinitions.Owned[i].DeploymentName = "cool.d"
			}
			s.Certificates = trustedBundles{"cool.d": newCA}
		}), func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "cool-d-service" }},
	} {
		t.Run(name, func(t *testing.T) {
			s, want := changed(c.change), createdAPI()
			c.want(want)
			create := olmcore.CreateOf(want, olmcore.Cause{Reason: "Install", Message: "APIService v1.ice.example.com does not exist"})
			create.As = s.Account
			require.Empty(t, cmp.Diff([]olmcore.Action{create}, apiWrites(s)))
			require.Empty(t, s.Trust(), "what does not exist trusts nothing")
			require.Equal(t, internalserving.Missing, s.Health().State)
		})
	}
}

func TestInstallUpdatesAPIService(t *testing.T) {
	uid := func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "uid-cool.v2" }
	for name, c := range map[string]struct {
		change func(*internalserving.Clients)
		want   func(*apiregistrationv1.APIService)
	}{
		"an APIService of the replaced version": {
			ownedBy("ns", "cool.v1"), func(a *apiregistrationv1.APIService) { a.Labels["olm.owner"] = "cool.v2" }},
		"under the account of the group": {
			changes(ownedBy("ns", "cool.v1"), withAccount), func(a *apiregistrationv1.APIService) { a.Labels["olm.owner"] = "cool.v2" },
		},
		"an earlier incarnation": {
			live(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "before" }), func(*apiregistrationv1.APIService) {},
		},
		"no label olm.managed": {
			live(func(a *apiregistrationv1.APIService) { delete(a.Labels, "olm.managed") }),
			func(a *apiregistrationv1.APIService) { a.Labels["olm.managed"] = "true" },
		},
		"another Service": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "x" }),
			func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "cool-service" },
		},
		"a Service elsewhere": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Namespace = "x" }),
			func(a *apiregistrationv1.APIService) { a.Spec.Service.Namespace = "ns" },
		},
		"no Service": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service = nil }),
			func(a *apiregistrationv1.APIService) { a.Spec.Service = createdAPI().Spec.Service },
		},
		"another port": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Port = new(int32(1)) }),
			func(a *apiregistrationv1.APIService) { a.Spec.Service.Port = new(int32(8443)) },
		},
		"no port": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Port = nil }),
			func(a *apiregistrationv1.APIService) { a.Spec.Service.Port = new(int32(8443)) },
		},
		"no bundle": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = nil }), func(a *apiregistrationv1.APIService) { a.Spec.CABundle = newCA },
		},
		"another bundle": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = otherCA }),
			func(a *apiregistrationv1.APIService) { a.Spec.CABundle = newCA },
		},
		"a bundle of garbage": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = []byte("garbage") }),
			func(a *apiregistrationv1.APIService) { a.Spec.CABundle = newCA },
		},
		"it skips the verification of certificates": {
			live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle, a.Spec.InsecureSkipTLSVerify = nil, true }),
			func(a *apiregistrationv1.APIService) { a.Spec.CABundle, a.Spec.InsecureSkipTLSVerify = newCA, false }},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(c.change)
			want := updated(t, s, "Install", "APIService v1.ice.example.com does not match this version", func(a *apiregistrationv1.APIService) {
				c.want(a)
				uid(a)
			})
			require.Empty(t, cmp.Diff([]olmcore.Action{want}, apiWrites(s)))
			require.Equal(t, internalserving.Missing, s.Health().State)
		})
	}
}

// TestAdoptionOfAPIServiceWritesNothing checks that an APIService that OLM created is not changed. Its priorities,
// annotations and missing labels stay.
func TestAdoptionOfAPIServiceWritesNothing(t *testing.T) {
	for name, change := range map[string]func(*internalserving.Clients){
		"as OLM created it":          func(*internalserving.Clients) {},
		"as this library created it": live(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "uid-cool.v2" }),
		"port 443 is the default": func(s *internalserving.Clients) {
			for i := range s.CSV.Spec.APIServiceDefinitions.Owned {
				s.CSV.Spec.APIServiceDefinitions.Owned[i].ContainerPort = 0
			}
			s.APIServices[0].Spec.Service.Port = nil
		},
		"the Subscription has other annotations": func(s *internalserving.Clients) {
			s.Config = &v1alpha1.SubscriptionConfig{Annotations: map[string]string{"user": "y"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(change)
			require.Empty(t, apiWrites(s))
			require.Empty(t, s.Trust())
			require.Equal(t, internalserving.Healthy, s.Health().State)
			problem, _ := s.Issue()
			require.Empty(t, problem)
			require.Empty(t, s.Conflict())
		})
	}
}

func TestInstallWaitsUntilAPIServiceCanBeCreated(t *testing.T) {
	for name, change := range map[string]func(*internalserving.Clients){
		"for a certificate":           changes(absent, func(s *internalserving.Clients) { s.Certificates = trustedBundles{} }),
		"for any certificate":         changes(absent, func(s *internalserving.Clients) { s.Certificates = nil }),
		"until an old one is deleted": live(func(a *apiregistrationv1.APIService) { a.DeletionTimestamp, a.Spec.Service = csvtest.Ago(0), nil }),
		"for a complete description": changes(absent, func(s *internalserving.Clients) {
			s.CSV.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{Group: "g", Version: "v1"}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(change)
			require.Empty(t, apiWrites(s))
			require.Empty(t, s.Trust())
			require.NotEqual(t, internalserving.Missing, s.Health().State, "else it would be installed again and again")
		})
	}
}

// TestAPIServiceTrustsBothAuthoritiesDuringRotation checks that both authorities are trusted first, and then only the
// new one. Nothing is reported as wrong in the meantime.
func TestAPIServiceTrustsBothAuthoritiesDuringRotation(t *testing.T) {
	both := join(oldCA, newCA)
	s := changed(
		live(func(a *apiregistrationv1.APIService) { a.Spec.CABundle = oldCA }),
		withAccount,
		func(s *internalserving.Clients) { s.Certificates = trustedBundles{"cool": both} },
	)
	rotates := func(to []byte) []olmcore.Action {
		return []olmcore.Action{
			updated(
				t,
				s,
				"Trust",
				"the certificate authority behind APIService v1.ice.example.com changes",
				func(a *apiregistrationv1.APIService) { a.Spec.CABundle = to },
			),
		}
	}
	require.Empty(t, cmp.Diff(rotates(both), s.Trust()))
	require.Equal(t, internalserving.Healthy, s.Health().State, "no new installation is needed for it")

	s.APIServices[0].Spec.CABundle = both
	require.Empty(t, s.Trust())
	require.Empty(t, apiWrites(s))
	require.Equal(t, internalserving.Healthy, s.Health().State)
	for _, hash := range []string{hashOf(oldCA), hashOf(newCA)} {
		s.Deployments[0].Spec.Template.Annotations["olmcahash"] = hash
		problem, _ := s.Issue()
		require.Empty(t, problem, "the Deployment follows the Secret")
	}

	s.Certificates = trustedBundles{"cool": newCA}
	require.Empty(t, cmp.Diff(rotates(newCA), s.Trust()))
	require.Equal(t, internalserving.Healthy, s.Health().State, "an authority too many is no fault")
}

func TestTrustChangesOnlyTheCABundle(t *testing.T) {
	rotating := func(change func(*apiregistrationv1.APIService)) internalserving.Clients {
		return changed(live(change), func(s *internalserving.Clients) { s.Certificates = trustedBundles{"cool": otherCA} })
	}
	s := rotating(func(a *apiregistrationv1.APIService) { a.Labels["olm.owner"], a.Spec.Service.Port = "cool.v1", nil })
	want := updated(
		t,
		s,
		"Trust",
		"the certificate authority behind APIService v1.ice.example.com changes",
		func(a *apiregistrationv1.APIService) { a.Spec.CABundle = otherCA },
	)
	require.Empty(t, cmp.Diff([]olmcore.Action{want}, s.Trust()), "the version before still owns it")

	for name, change := range map[string]func(*apiregistrationv1.APIService){
		"it calls another Service":                  func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "x" },
		"it calls another namespace":                func(a *apiregistrationv1.APIService) { a.Spec.Service.Namespace = "x" },
		"it calls nothing":                          func(a *apiregistrationv1.APIService) { a.Spec.Service = nil },
		"it skips the verification of certificates": func(a *apiregistrationv1.APIService) { a.Spec.InsecureSkipTLSVerify = true },
		"it is being deleted":                       func(a *apiregistrationv1.APIService) { a.DeletionTimestamp = csvtest.Ago(0) },
		"it belongs to another operator":            func(a *apiregistrationv1.APIService) { a.Labels = ownerLabels("other", "cool.v2") },
	} {
		t.Run(name, func(t *testing.T) { require.Empty(t, rotating(change).Trust()) })
	}
}

// TestAPIServiceRemovedFromSpecIsDeleted checks that only an APIService with the UID of this CSV is deleted.
func TestAPIServiceRemovedFromSpecIsDeleted(t *testing.T) {
	dropped := func(change func(*apiregistrationv1.APIService)) func(*internalserving.Clients) {
		return func(s *internalserving.Clients) {
			a := liveAPI()
			a.Name = "v0.ice.example.com"
			change(a)
			s.APIServices = append(s.APIServices, a)
		}
	}
	for name, c := range map[string]struct {
		change func(*apiregistrationv1.APIService)
		goes   bool
	}{
		"OLM created it":                     {func(*apiregistrationv1.APIService) {}, true},
		"this library created it":            {func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "uid-cool.v2" }, true},
		"it belongs to another UID":          {func(a *apiregistrationv1.APIService) { a.Labels["olm.owner.uid"] = "before" }, false},
		"it belongs to the replaced version": {func(a *apiregistrationv1.APIService) { a.Labels = ownerLabels("ns", "cool.v1") }, false},
		"of another namespace":               {func(a *apiregistrationv1.APIService) { a.Labels = ownerLabels("other", "cool.v2") }, false},
		"not managed":                        {func(a *apiregistrationv1.APIService) { a.Labels = nil }, false},
		"it is being deleted":                {func(a *apiregistrationv1.APIService) { a.DeletionTimestamp = csvtest.Ago(0) }, false},
		"it is described":                    {func(a *apiregistrationv1.APIService) { a.Name = apiName }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := changed(dropped(c.change), withAccount)
			if !c.goes {
				require.Empty(t, s.Trust())
				require.Empty(t, apiWrites(s))
				return
			}
			want := olmcore.DeleteOf(
				s.APIServices[1],
				olmcore.Cause{Reason: "NotOwned", Message: "the spec no longer contains APIService v0.ice.example.com"},
			)
			want.As = s.Account
			require.Empty(t, cmp.Diff([]olmcore.Action{want}, s.Trust()))
			require.Empty(t, cmp.Diff([]olmcore.Action{want}, apiWrites(s)), "an installation includes the writes of Trust")
			require.Equal(t, internalserving.Healthy, s.Health().State)
		})
	}
}

// TestChangedDeploymentReplacesTheAuthority checks that one write changes the Service and the authority.
func TestChangedDeploymentReplacesTheAuthority(t *testing.T) {
	s := changed(ownedBy("ns", "cool.v1"), func(s *internalserving.Clients) {
		s.Certificates = trustedBundles{"cool": newCA}
		s.APIServices[0].Spec.Service.Name, s.APIServices[0].Spec.CABundle = "before-service", oldCA
	})
	require.Empty(t, s.Trust(), "the API server still calls the old one")
	want := updated(t, s, "Install", "APIService v1.ice.example.com does not match this version", func(a *apiregistrationv1.APIService) {
		a.Labels = createdAPI().Labels
		a.Spec.Service.Name, a.Spec.CABundle = "cool-service", newCA
	})
	require.Empty(t, cmp.Diff([]olmcore.Action{want}, apiWrites(s)))
}

// legacyObjects adds the objects that very old versions of OLM created for the fixture.
func legacyObjects(s *internalserving.Clients) {
	ours := ownerLabels("ns", "cool.v2")
	s.Objects.Services.Items = append(s.Objects.Services.Items, &corev1.Service{ObjectMeta: named("ns", "v1-ice-example-com", ours)})
	s.Objects.Secrets.Items = append(s.Objects.Secrets.Items, &corev1.Secret{ObjectMeta: named("ns", apiName+"-cert", ours)})
	s.Objects.Roles.Items = append(s.Objects.Roles.Items, &rbacv1.Role{ObjectMeta: named("ns", apiName+"-cert", ours)})
	s.Objects.RoleBindings.Items = append(
		s.Objects.RoleBindings.Items,
		&rbacv1.RoleBinding{
			ObjectMeta: named("ns", apiName+"-cert", ours),
		},
		&rbacv1.RoleBinding{ObjectMeta: named("kube-system", apiName+"-auth-reader", ours)},
	)
	s.Objects.ClusterRoleBindings.Items = append(
		s.Objects.ClusterRoleBindings.Items,
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", apiName+"-system:auth-delegator", ours)},
	)
}

func TestLegacyObjectsAreDeleted(t *testing.T) {
	s := changed(legacyObjects, withAccount)
	actions := apiWrites(s)
	require.Equal(t, []string{
		"delete Service v1-ice-example-com", "delete Secret v1.ice.example.com-cert", "delete Role v1.ice.example.com-cert",
		"delete RoleBinding v1.ice.example.com-cert", "delete ClusterRoleBinding v1.ice.example.com-system:auth-delegator",
		"delete RoleBinding v1.ice.example.com-auth-reader",
	}, csvtest.Writes(actions))
	for _, a := range actions {
		_, target, cause := a.Describe()
		require.NotEmpty(t, target.UID)
		require.Equal(
			t,
			olmcore.Cause{
				Reason:  "LegacyObject",
				Message: "an old version of OLM created it for APIService v1.ice.example.com, and it is no longer used",
			},
			cause,
		)
		require.Equal(t, s.Account, a.Identity())
	}
	require.Equal(t, internalserving.Healthy, s.Health().State)

	for name, change := range map[string]func(*internalserving.Clients){
		"the APIService still calls the old Service": live(func(a *apiregistrationv1.APIService) { a.Spec.Service.Name = "v1-ice-example-com" }),
		"the APIService is another's":                ownedBy("other", "cool.v2"),
		"the APIService is gone":                     absent,
		"they are another version's":                 relabel(ownerLabels("ns", "cool.v1")),
		"they are a later incarnation's": relabel(olmcore.Owner{
			Kind: "ClusterServiceVersion", Namespace: "ns", Name: "cool.v2", UID: "later",
		}.Labels()),
		"they are a user's": relabel(nil),
		"nothing was read":  func(s *internalserving.Clients) { s.Objects = nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range apiWrites(changed(legacyObjects, change)) {
				verb, _, _ := a.Describe()
				require.NotEqual(t, olmcore.VerbDelete, verb)
			}
		})
	}
}

// TestServiceInUseIsNotALegacyObject checks a Service of a present Deployment that has the name of a legacy Service.
func TestServiceInUseIsNotALegacyObject(t *testing.T) {
	s := changed(func(s *internalserving.Clients) {
		for i := range s.CSV.Spec.APIServiceDefinitions.Owned {
			s.CSV.Spec.APIServiceDefinitions.Owned[i].Group, s.CSV.Spec.APIServiceDefinitions.Owned[i].DeploymentName = "cool-service", "v1-cool"
		}
		s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = "v1-cool"
		s.Certificates = trustedBundles{"v1-cool": newCA}
		a := s.APIServices[0]
		a.Name, a.Spec.Group, a.Spec.Service.Name = "v1.cool-service", "cool-service", "v1-cool-service"
		s.Objects.Services.Items = append(
			s.Objects.Services.Items,
			&corev1.Service{ObjectMeta: named("ns", "v1-cool-service", ownerLabels("ns", "cool.v2"))},
		)
	})
	require.Empty(t, apiWrites(s))
}

// relabel changes the labels of the legacy objects.
func relabel(labels map[string]string) func(*internalserving.Clients) {
	return func(s *internalserving.Clients) {
		o := s.Objects
		o.Services.Items[1].Labels, o.Secrets.Items[1].Labels, o.Roles.Items[1].Labels = labels, labels, labels
		o.RoleBindings.Items[2].Labels, o.RoleBindings.Items[3].Labels, o.ClusterRoleBindings.Items[1].Labels = labels, labels, labels
	}
}
