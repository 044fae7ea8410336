// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// version makes a ClusterServiceVersion without a catalog, as a person does: NAME.vVERSION, or NAME.vVERSION replaces
// OTHER.
func (s *story) version(name, version, replaces string, changes ...change) {
	b := &bundle{csv: usualCSV(s, name, resolution.ChannelEntry{Name: name + ".v" + version, Replaces: replaces}, version)}
	strategy := &b.csv.Spec.InstallStrategy.StrategySpec
	strategy.Permissions, strategy.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = nil, ""
	for _, change := range changes {
		change(s, b)
	}
	for _, o := range b.objects {
		s.create(o)
	}
	b.csv.Namespace = cmp.Or(b.csv.Namespace, s.ns)
	s.create(b.csv)
}

// is waits until a version is what is wanted: "PHASE REASON: MESSAGE".
func (s *story) is(version, want string) {
	s.Helper()
	eventually(s, version+" is "+want, func() string {
		status := s.csv(version).Status
		return fmt.Sprintf("%s %s: %s", status.Phase, status.Reason, status.Message)
	}, want)
}

// succeeds waits until a version has succeeded.
func (s *story) succeeds(version string) {
	s.Helper()
	s.is(version, "Succeeded InstallSucceeded: install strategy completed with no errors")
}

// requirement returns what a version says of something that it needs: "STATUS: MESSAGE".
func (s *story) requirement(version, kind, name string) string {
	for _, r := range s.csv(version).Status.RequirementStatus {
		if r.Kind == kind && r.Name == s.text(name) {
			return fmt.Sprintf("%s: %s", r.Status, r.Message)
		}
	}
	return ""
}

func TestPhasesOfAVersion(t *testing.T) {
	t.Parallel()
	tell(t, "it is pending, ready to install, installing, and succeeds", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		s.goesThrough("ClusterServiceVersion", "alpha.v1.0.0", "Phase", "Pending", "InstallReady", "Installing", "Succeeded")
	})
	tell(t, "its Deployment is its own, with its labels", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		d := get[*appsv1.Deployment](s, "alpha")
		require.Equal(s, []string{"alpha.v1.0.0", s.ns, "ClusterServiceVersion"}, []string{d.Labels["olm.owner"], d.Labels["olm.owner.namespace"], d.Labels["olm.owner.kind"]})
		require.Equal(s, s.csv("alpha.v1.0.0").UID, d.OwnerReferences[0].UID)
	})
	tell(t, "an operator whose Pods get never ready fails when its time is over", func(s *story) {
		s.group()
		s.imageIs("alpha:v1.0.0", controlplane.Image{NeverReady: true})
		s.version("alpha", "1.0.0", "")
		// What its Pods lack is said in the place of the timeout within the second: the history keeps it.
		s.until("it has failed", func() bool {
			return slices.ContainsFunc(s.csv("alpha.v1.0.0").Status.Conditions, func(c v1alpha1.ClusterServiceVersionCondition) bool {
				return c.Phase == v1alpha1.CSVPhaseFailed && c.Reason == v1alpha1.CSVReasonInstallCheckFailed && c.Message == "install timeout"
			})
		})
	})
	tell(t, "an operator that failed for want of time succeeds once its Pods are ready", func(s *story) {
		s.group()
		s.imageIs("alpha:v1.0.0", controlplane.Image{NeverReady: true})
		s.version("alpha", "1.0.0", "")
		s.until("it has failed", func() bool { return s.csv("alpha.v1.0.0").Status.Phase == v1alpha1.CSVPhaseFailed })
		s.imageIs("alpha:v1.0.0", controlplane.Image{})
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a Deployment that a person deletes is made again", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		before := get[*appsv1.Deployment](s, "alpha").UID
		remove[*appsv1.Deployment](s, "alpha")
		s.until("there is another one", func() bool {
			d := get[*appsv1.Deployment](s, "alpha")
			return d.UID != "" && d.UID != before
		})
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a new image in its spec is rolled out", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		edit(s, "alpha.v1.0.0", func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = s.image("alpha:fixed")
		})
		eventually(s, "it has the new image", func() string { return get[*appsv1.Deployment](s, "alpha").Spec.Template.Spec.Containers[0].Image }, "registry.example.com/NS/alpha:fixed")
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a second Deployment in its spec is made", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) {
			second := c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].DeepCopy()
			second.Name = "webhooks"
			second.Spec.Selector.MatchLabels, second.Spec.Template.Labels = map[string]string{"app": "webhooks"}, map[string]string{"app": "webhooks"}
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = append(c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, *second)
		}))
		s.succeeds("alpha.v1.0.0")
		require.True(s, exists[*appsv1.Deployment](s, "alpha") && exists[*appsv1.Deployment](s, "webhooks"))
	})
	tell(t, "a strategy that OLM does not know fails", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.InstallStrategy.StrategyName = "helm" }))
		s.until("it has failed", func() bool { return s.csv("alpha.v1.0.0").Status.Reason == v1alpha1.CSVReasonInvalidStrategy })
	})
	tell(t, "the finalizer of the cleanup is on it", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		require.Contains(s, s.csv("alpha.v1.0.0").Finalizers, "operators.coreos.com/csv-cleanup")
	})
}

func TestWhatAVersionRequires(t *testing.T) {
	t.Parallel()
	const unmet = "Pending RequirementsNotMet: one or more requirements couldn't be found"
	tell(t, "an API of others is waited for", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", requires("Widget"))
		s.is("alpha.v1.0.0", unmet)
		require.Equal(s, "NotPresent: CRD is not present", s.requirement("alpha.v1.0.0", "CustomResourceDefinition", "widgets.NS.example.com"))
		s.given(s.crd("Widget"))
		s.succeeds("alpha.v1.0.0")
		require.Equal(s, "Present: CRD is present and Established condition is true", s.requirement("alpha.v1.0.0", "CustomResourceDefinition", "widgets.NS.example.com"))
	})
	tell(t, "an API of its own, too", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", ownsAlready("Widget"))
		s.is("alpha.v1.0.0", unmet)
		s.given(s.crd("Widget"))
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a ServiceAccount of its permissions is waited for", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{
				ServiceAccountName: "worker", Rules: []rbacv1.PolicyRule{},
			}}
		}))
		s.is("alpha.v1.0.0", unmet)
		require.Contains(s, s.requirement("alpha.v1.0.0", "ServiceAccount", "worker"), "NotPresent")
		s.given("{apiVersion: v1, kind: ServiceAccount, metadata: {name: worker}}")
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "permissions that come later are waited for", func(s *story) {
		s.group()
		s.given("{apiVersion: v1, kind: ServiceAccount, metadata: {name: worker}}")
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.Permissions = []v1alpha1.StrategyDeploymentPermissions{{
				ServiceAccountName: "worker", Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
			}}
		}))
		s.is("alpha.v1.0.0", unmet)
		require.Contains(s, s.requirement("alpha.v1.0.0", "ServiceAccount", "worker"), "PresentNotSatisfied")
		s.given(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: worker}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: worker}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: worker}
subjects: [{kind: ServiceAccount, name: worker, namespace: NS}]
`)
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "permissions that are lost fail it, and it succeeds when they are back", func(s *story) {
		s.group()
		s.catalog("community", alphaWith())
		s.subscribe("alpha")
		s.installed("alpha", "alpha.v1.0.0")
		role := owned[*rbacv1.Role](s, s.ns, "alpha.v1.0.0")[0]
		rules := get[*rbacv1.Role](s, role).Rules
		edit(s, role, func(r *rbacv1.Role) { r.Rules = nil })
		s.until("it says so", func() bool { return s.csv("alpha.v1.0.0").Status.Reason == v1alpha1.CSVReasonRequirementsNotMet })
		edit(s, role, func(r *rbacv1.Role) { r.Rules = rules })
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a Kubernetes that is new enough is enough", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.MinKubeVersion = "1.20.0" }))
		s.succeeds("alpha.v1.0.0")
		require.Equal(s, v1alpha1.StatusReason("Present"), s.csv("alpha.v1.0.0").Status.RequirementStatus[0].Status)
	})
	tell(t, "a newer Kubernetes is waited for", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", edited(func(c *v1alpha1.ClusterServiceVersion) { c.Spec.MinKubeVersion = "99.0.0" }))
		s.is("alpha.v1.0.0", unmet)
		require.Equal(s, v1alpha1.StatusReason("PresentNotSatisfied"), s.csv("alpha.v1.0.0").Status.RequirementStatus[0].Status)
	})
	tell(t, "an API that is lost fails it, and it succeeds when that is back", func(s *story) {
		s.group()
		s.given(s.crd("Widget"))
		s.version("alpha", "1.0.0", "", requires("Widget"))
		s.succeeds("alpha.v1.0.0")
		removeIn[*crdType](s, "", "widgets.NS.example.com")
		s.until("its requirements are not met", func() bool { return s.csv("alpha.v1.0.0").Status.Reason == v1alpha1.CSVReasonRequirementsNotMet })
		s.until("the definition is gone", func() bool {
			return live(s, olmcore.GVKOf(&crdType{}), "", "widgets.NS.example.com").GetName() == ""
		})
		s.given(s.crd("Widget"))
		s.succeeds("alpha.v1.0.0")
	})
}

func TestVersionsThatConflict(t *testing.T) {
	t.Parallel()
	tell(t, "a second owner of an API in one namespace fails", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		s.version("beta", "1.0.0", "", ownsAlready("Widget"))
		s.is("beta.v1.0.0", "Failed OwnerConflict: conflicting CRD owner in namespace")
		s.succeeds("alpha.v1.0.0")
	})
	tell(t, "a version that replaces the owner is none", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		s.version("alpha", "2.0.0", "alpha.v1.0.0", ownsAlready("Widget"))
		s.succeeds("alpha.v2.0.0")
		s.until("the old one is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
	})
	tell(t, "the second goes on when the first is deleted", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "", owns("Widget"))
		s.succeeds("alpha.v1.0.0")
		s.version("beta", "1.0.0", "", ownsAlready("Widget"))
		s.until("it has failed", func() bool { return s.csv("beta.v1.0.0").Status.Reason == v1alpha1.CSVReasonOwnerConflict })
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.succeeds("beta.v1.0.0")
	})
}

func TestUpgradeChainsOfVersions(t *testing.T) {
	t.Parallel()
	tell(t, "the new version waits for what it needs, and the old one goes on", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		s.version("alpha", "2.0.0", "alpha.v1.0.0", requires("Widget"))
		s.until("it waits", func() bool { return s.csv("alpha.v2.0.0").Status.Reason == v1alpha1.CSVReasonRequirementsNotMet })
		s.given(s.crd("Widget"))
		s.succeeds("alpha.v2.0.0")
		s.until("the old one is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
	})
	tell(t, "the Deployment goes over to the new version and is not made anew", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		before := get[*appsv1.Deployment](s, "alpha").UID
		s.version("alpha", "2.0.0", "alpha.v1.0.0")
		s.succeeds("alpha.v2.0.0")
		s.until("the old one is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
		d := get[*appsv1.Deployment](s, "alpha")
		require.Equal(s, before, d.UID)
		require.Equal(s, "alpha.v2.0.0", d.Labels["olm.owner"])
	})
	tell(t, "a new version that does not become ready keeps the old one in its place as replaced", func(s *story) {
		s.group()
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		s.imageIs("alpha:v2.0.0", controlplane.Image{Waits: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}})
		s.version("alpha", "2.0.0", "alpha.v1.0.0")
		s.is("alpha.v1.0.0", "Replacing BeingReplaced: being replaced by csv: alpha.v2.0.0")
		s.imageIs("alpha:v2.0.0", controlplane.Image{})
		s.succeeds("alpha.v2.0.0")
	})
	tell(t, "a version that replaces one which is not there is installed as any other", func(s *story) {
		s.group()
		s.version("alpha", "2.0.0", "alpha.v1.0.0")
		s.succeeds("alpha.v2.0.0")
	})
}

func TestCopiesOfVersions(t *testing.T) {
	t.Parallel()
	tell(t, "each namespace that the operator watches has one", func(s *story) {
		s.namespace("NS-watched")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group}, spec: {targetNamespaces: [NS-watched]}}")
		s.version("alpha", "1.0.0", "")
		s.succeeds("alpha.v1.0.0")
		s.until("there is a copy", func() bool {
			return s.copyIn("NS-watched", "alpha.v1.0.0").Status.Phase == v1alpha1.CSVPhaseSucceeded
		})
		made := s.copyIn("NS-watched", "alpha.v1.0.0")
		require.Equal(s, []string{s.ns, "Copied", s.text("The operator is running in NS but is managing this namespace")},
			[]string{made.Labels["olm.copiedFrom"], string(made.Status.Reason), made.Status.Message})
		require.Empty(s, made.Finalizers)
	})
	tell(t, "one that is deleted comes back", func(s *story) {
		s.namespace("NS-watched")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group}, spec: {targetNamespaces: [NS-watched]}}")
		s.version("alpha", "1.0.0", "")
		s.until("there is a copy", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").UID != "" })
		before := s.copyIn("NS-watched", "alpha.v1.0.0").UID
		removeIn[*v1alpha1.ClusterServiceVersion](s, "NS-watched", "alpha.v1.0.0")
		s.until("there is another one", func() bool {
			uid := s.copyIn("NS-watched", "alpha.v1.0.0").UID
			return uid != "" && uid != before
		})
	})
	tell(t, "they go with the version", func(s *story) {
		s.namespace("NS-watched")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group}, spec: {targetNamespaces: [NS-watched]}}")
		s.version("alpha", "1.0.0", "")
		s.until("there is a copy", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").UID != "" })
		remove[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0")
		s.until("the copy is gone", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").UID == "" })
	})
	tell(t, "a namespace that is watched no more has none", func(s *story) {
		s.namespace("NS-watched")
		s.given("{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: group}, spec: {targetNamespaces: [NS-watched]}}")
		s.version("alpha", "1.0.0", "")
		s.until("there is a copy", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").UID != "" })
		edit(s, "group", func(g *operatorsv1.OperatorGroup) { g.Spec.TargetNamespaces = []string{s.ns} })
		s.until("the copy is gone", func() bool { return s.copyIn("NS-watched", "alpha.v1.0.0").UID == "" })
		s.succeeds("alpha.v1.0.0")
	})
}

// copyIn returns a version in another namespace.
func (s *story) copyIn(namespace, name string) *v1alpha1.ClusterServiceVersion {
	return getIn[*v1alpha1.ClusterServiceVersion](s, namespace, name)
}
