// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

type crdType = apiextensionsv1.CustomResourceDefinition

// ownsAlready lists a kind that the operator provides, whose CustomResourceDefinition is there.
func ownsAlready(kind string) change {
	return func(s *story, b *bundle) {
		owns(kind)(s, b)
		b.objects = b.objects[:len(b.objects)-1]
	}
}

// groupOf makes an OperatorGroup with a spec.
func (s *story) groupOf(name, spec string) {
	s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: " + name + "}, spec: " + spec + "}")
}

// targets are the namespaces that an OperatorGroup has found.
func (s *story) targets(group string) []string {
	return get[*operatorsv1.OperatorGroup](s, group).Status.Namespaces
}

func TestWhatAnOperatorGroupTargets(t *testing.T) {
	t.Parallel()
	tell(t, "the namespaces that it names", func(s *story) {
		s.groupOf("group", "{targetNamespaces: [NS-b, NS-a]}")
		eventually(s, "they are in its status", func() []string { return s.targets("group") }, []string{"NS-a", "NS-b"})
	})
	tell(t, "all namespaces when it names none", func(s *story) {
		s.groupOf("group", "{}")
		eventually(s, "they are in its status", func() []string { return s.targets("group") }, []string{""})
	})
	tell(t, "the namespaces with a label, as these come and go", func(s *story) {
		s.namespace("NS-a")
		s.groupOf("group", "{selector: {matchLabels: {of: NS}}}")
		s.until("there are none", func() bool {
			return !get[*operatorsv1.OperatorGroup](s, "group").Status.LastUpdated.IsZero() && len(s.targets("group")) == 0
		})
		editIn(s, "", "NS-a", func(n *corev1.Namespace) { n.Labels = map[string]string{"of": s.ns} })
		eventually(s, "it has one", func() []string { return s.targets("group") }, []string{"NS-a"})
		editIn(s, "", "NS-a", func(n *corev1.Namespace) { n.Labels = nil })
		s.until("there are none again", func() bool { return len(s.targets("group")) == 0 })
	})
	tell(t, "the names count before the label", func(s *story) {
		s.groupOf("group", "{targetNamespaces: [NS], selector: {matchLabels: {of: NS}}}")
		eventually(s, "they are in its status", func() []string { return s.targets("group") }, []string{"NS"})
	})
	tell(t, "what it targets is on the version, and on its Pods", func(s *story) {
		s.namespace("NS-a")
		s.groupOf("group", "{targetNamespaces: [NS-a]}")
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		for key, want := range map[string]string{"olm.targetNamespaces": "NS-a", "olm.operatorNamespace": "NS", "olm.operatorGroup": "group"} {
			require.Equal(s, s.text(want), s.csv("alpha.v1.0.0").Annotations[key])
			require.Equal(s, s.text(want), get[*appsv1.Deployment](s, "alpha").Spec.Template.Annotations[key])
		}
	})
	tell(t, "the operator may act where it targets, as that changes", func(s *story) {
		s.namespace("NS-a")
		s.namespace("NS-b")
		s.groupOf("group", "{targetNamespaces: [NS-a]}")
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		s.until("it may act in the first", func() bool { return len(s.lifted("NS-a")) == 2 })
		require.Empty(s, s.lifted("NS-b"))
		edit(s, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = []string{s.ns + "-b"} })
		s.until("it may act in the second alone", func() bool { return len(s.lifted("NS-a")) == 0 && len(s.lifted("NS-b")) == 2 })
	})
	tell(t, "another target reaches the Pods that run", func(s *story) {
		s.namespace("NS-a")
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		edit(s, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = []string{s.ns + "-a"} })
		eventually(s, "the Pods know it", func() string {
			return get[*appsv1.Deployment](s, "alpha").Spec.Template.Annotations["olm.targetNamespaces"]
		}, "NS-a")
		s.succeeds("alpha.v1.0.0")
	})
}

func TestAnOperatorNeedsOneOperatorGroup(t *testing.T) {
	t.Parallel()
	tell(t, "without one it fails, and goes on once there is one", func(s *story) {
		s.version("alpha", "1.0.0", "")
		s.is("alpha.v1.0.0", "Failed NoOperatorGroup: csv in namespace with no operatorgroups")
		s.group()
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "with two it fails, and goes on once one is deleted", func(s *story) {
		s.group()
		s.groupOf("second", "{targetNamespaces: [NS]}")
		s.version("alpha", "1.0.0", "")
		s.is("alpha.v1.0.0", "Failed TooManyOperatorGroups: csv created in namespace with multiple operatorgroups, can't pick one automatically")
		remove[*operatorsv1.OperatorGroup](s, "second")
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "two of a namespace say so, until one is deleted", func(s *story) {
		s.group()
		s.groupOf("second", "{targetNamespaces: [NS]}")
		const why = "True " + operatorsv1.MultipleOperatorGroupsReason + ": Multiple OperatorGroup found in the same namespace"
		says[*operatorsv1.OperatorGroup](s, "group", operatorsv1.MutlipleOperatorGroupCondition, why)
		says[*operatorsv1.OperatorGroup](s, "second", operatorsv1.MutlipleOperatorGroupCondition, why)
		remove[*operatorsv1.OperatorGroup](s, "second")
		says[*operatorsv1.OperatorGroup](s, "group", operatorsv1.MutlipleOperatorGroupCondition, "")
	})
	tell(t, "a group without a namespace is as good as none", func(s *story) {
		s.groupOf("group", "{selector: {matchLabels: {of: NS}}}")
		s.version("alpha", "1.0.0", "")
		s.is("alpha.v1.0.0", "Failed NoTargetNamespaces: no targetNamespaces are matched operatorgroups namespace selection")
		edit(s, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.Selector, g.Spec.TargetNamespaces = nil, []string{s.ns} })
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "an operator that runs fails with its group, and runs on", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		remove[*operatorsv1.OperatorGroup](s, "group")
		s.is("alpha.v1.0.0", "Failed NoOperatorGroup: csv in namespace with no operatorgroups")
		require.True(s, exists[*appsv1.Deployment](s, "alpha"))
		s.group()
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a ServiceAccount that it names and that is not there is said", func(s *story) {
		s.groupOf("group", "{targetNamespaces: [NS], serviceAccountName: worker}")
		s.until("it says so", func() bool {
			return conditionOf(get[*operatorsv1.OperatorGroup](s, "group"), "OperatorGroupServiceAccount") != ""
		})
		s.given("{apiVersion: v1, kind: ServiceAccount, metadata: {name: worker}}")
		says[*operatorsv1.OperatorGroup](s, "group", "OperatorGroupServiceAccount", "")
		s.until("it refers to it", func() bool {
			ref := get[*operatorsv1.OperatorGroup](s, "group").Status.ServiceAccountRef
			return ref != nil && ref.Name == "worker"
		})
	})
}

func TestInstallModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sentence, targets, refused string
		modes                      []v1alpha1.InstallModeType
	}{
		{"for its own namespace alone, none of others", "[NS-a]", "SingleNamespace InstallModeType not supported, cannot configure to watch one namespace", []v1alpha1.InstallModeType{"OwnNamespace"}},
		{"for one other namespace alone, not its own", "[NS]", "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace", []v1alpha1.InstallModeType{"SingleNamespace"}},
		{"for one namespace, not two", "[NS, NS-a]", "MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces", []v1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace"}},
		{"for single namespaces, not all", "[]", "AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces", []v1alpha1.InstallModeType{"OwnNamespace", "SingleNamespace"}},
		{"for all namespaces, not one", "[NS]", "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace", []v1alpha1.InstallModeType{"AllNamespaces"}},
	} {
		tell(t, "an operator is "+c.sentence, func(s *story) {
			s.namespace("NS-a")
			s.groupOf("group", "{targetNamespaces: "+c.targets+"}")
			s.version("alpha", "1.0.0", "", supports(c.modes...))
			s.is("alpha.v1.0.0", "Failed UnsupportedOperatorGroup: "+c.refused)
		})
	}
	tell(t, "a group that fits later lets it go on", func(s *story) {
		s.groupOf("group", "{}")
		s.version("alpha", "1.0.0", "", supports("OwnNamespace"))
		s.until("it is refused", func() bool { return s.csv("alpha.v1.0.0").Status.Reason == v1alpha1.CSVReasonUnsupportedOperatorGroup })
		edit(s, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = []string{s.ns} })
		s.succeeds("alpha.v1.0.0")
		eventually(s, "it begins anew", func() []string {
			return after(s.transitions("ClusterServiceVersion", "alpha.v1.0.0", "Phase"), "Failed")
		},
			[]string{"Failed", "Pending", "InstallReady", "Installing", "Succeeded"})
	})
}

// after returns the words of a list from one on.
func after(list []string, word string) []string {
	for i, w := range list {
		if w == word {
			return list[i:]
		}
	}
	return nil
}

func TestAPIsOfOperatorGroups(t *testing.T) {
	t.Parallel()
	tell(t, "what its operators provide is on the group", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		eventually(s, "it is listed", func() string { return get[*operatorsv1.OperatorGroup](s, "group").Annotations["olm.providedAPIs"] }, "Widget.v1.NS.example.com")
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		eventually(s, "it is listed no more", func() string { return get[*operatorsv1.OperatorGroup](s, "group").Annotations["olm.providedAPIs"] }, "")
	})
	tell(t, "a group of another namespace that shares a target may not provide the same", func(s *story) {
		s.namespace("NS-other")
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, namespace: NS-other}, spec: {targetNamespaces: [NS, NS-other]}}")
		s.versionIn("NS-other", "beta", ownsAlready("Widget"), supports("MultiNamespace", "OwnNamespace", "SingleNamespace"))
		eventually(s, "it is refused", func() string {
			status := s.copyIn("NS-other", "beta.v1.0.0").Status
			return string(status.Phase) + " " + string(status.Reason) + ": " + status.Message
		}, "Failed InterOperatorGroupOwnerConflict: intersecting operatorgroups provide the same apis")
	})
	tell(t, "and may once the other provides it no more", func(s *story) {
		s.namespace("NS-other")
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, namespace: NS-other}, spec: {targetNamespaces: [NS]}}")
		s.versionIn("NS-other", "beta", ownsAlready("Widget"))
		s.until("it is refused", func() bool {
			return s.copyIn("NS-other", "beta.v1.0.0").Status.Reason == v1alpha1.CSVReasonInterOperatorGroupOwnerConflict
		})
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.until("it succeeds", func() bool { return s.copyIn("NS-other", "beta.v1.0.0").Status.Phase == v1alpha1.CSVPhaseSucceeded })
	})
	tell(t, "without a namespace in common they do not disturb each other", func(s *story) {
		s.namespace("NS-other")
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group, namespace: NS-other}, spec: {targetNamespaces: [NS-other]}}")
		s.versionIn("NS-other", "beta", ownsAlready("Widget"))
		s.until("it succeeds", func() bool { return s.copyIn("NS-other", "beta.v1.0.0").Status.Phase == v1alpha1.CSVPhaseSucceeded })
	})
	tell(t, "a group with fixed APIs takes none besides", func(s *story) {
		s.groupOf("group", "{targetNamespaces: [NS], staticProvidedAPIs: true}")
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.is("alpha.v1.0.0", "Failed CannotModifyStaticOperatorGroupProvidedAPIs: static provided api operatorgroup cannot be modified by these apis")
		edit(s, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.StaticProvidedAPIs = false })
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "users get ClusterRoles for what is provided", func(s *story) {
		s.group()
		s.catalog("community", alphaWith(owns("Widget")))
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		for _, verb := range []string{"admin", "edit", "view"} {
			s.until("there is one to "+verb, func() bool {
				role, err := olmcore.Get[*rbacv1.ClusterRole](s.Context(), world.user, "", "widgets."+s.apiGroup()+"-v1-"+verb)
				require.NoError(s, err)
				return role != nil && role.Labels["rbac.authorization.k8s.io/aggregate-to-"+verb] == "true"
			})
		}
	})
}

// versionIn makes a version 1.0.0 in another namespace.
func (s *story) versionIn(namespace, name string, changes ...change) {
	s.version(name, "1.0.0", "", append(changes, edited(func(c *v1alpha1.ClusterServiceVersion) { c.Namespace = s.text(namespace) }))...)
}
