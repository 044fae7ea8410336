// SPDX-License-Identifier: Apache-2.0

package stories_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/internal/controlplane"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/rollback"
)

// observed is what a preview looks at in the story's namespace.
func (s *story) observed() preview.Input {
	in, err := preview.GatherNamespace(s.Context(), world.user, s.ns, time.Now(), options())
	require.NoError(s, err)
	return in
}

// own are the changes of a preview that are the story's: of its namespace, or of its API group.
func (s *story) own(p preview.Preview) (lines []string) {
	for _, o := range p.Objects {
		if o.Object.Namespace == s.ns || strings.HasSuffix(o.Object.Name, s.apiGroup()) {
			lines = append(lines, string(o.Change)+" "+o.Object.Kind+" "+o.Object.Name)
		}
	}
	slices.Sort(lines)
	return lines
}

// upgraded is a package whose second version may read Secrets, and changes its definition.
func upgraded(changes ...change) *pack {
	more := func(s *story, b *bundle) {
		spec := &b.csv.Spec.InstallStrategy.StrategySpec
		spec.Permissions[0].Rules = append(spec.Permissions[0].Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
		for _, o := range b.objects {
			if crd, is := o.(*apiextensionsv1.CustomResourceDefinition); is {
				next := *crd.Spec.Versions[0].DeepCopy()
				next.Name, next.Storage = "v2", false
				crd.Spec.Versions = append(crd.Spec.Versions, next)
			}
		}
	}
	return pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0").
		bundle("alpha.v1.0.0", owns("Widget")).bundle("alpha.v1.1.0", append([]change{owns("Widget"), more}, changes...)...)
}

// waiting has version 1.0.0 installed, and the plan of version 1.1.0 wait for approval.
func (s *story) waiting(p *pack) {
	s.group()
	s.catalog("community", p)
	s.subscribe("alpha", manual, startingAt("alpha.v1.0.0"))
	s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.0.0")
	s.approve("alpha")
	s.planned("alpha", v1alpha1.InstallPlanPhaseRequiresApproval, "alpha.v1.1.0")
	eventually(s, "version 1.0.0 runs", func() v1alpha1.ClusterServiceVersionPhase { return s.csv("alpha.v1.0.0").Status.Phase }, v1alpha1.CSVPhaseSucceeded)
	s.atRest()
}

func TestApprovalsAreForeseen(t *testing.T) {
	t.Parallel()
	tell(t, "what a preview says of an upgrade is what comes", func(s *story) {
		s.waiting(upgraded())
		before := s.observed()
		p, err := preview.Run(s.Context(), world.user, types.NamespacedName{Namespace: s.ns, Name: s.plan("alpha").Name}, time.Now(), options())
		require.NoError(s, err)
		require.Empty(s, p.Blocked)
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.1.0")
		s.until("the old version is gone", func() bool { return !exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.0.0") })
		s.atRest()
		came := preview.Between(before.Objects, s.observed().Objects)
		require.Equal(s, s.own(came), s.own(p))
		require.Len(s, p.Permissions.Added, 1)
		require.Equal(s, "get secrets", p.Permissions.Added[0].String())
		require.Equal(s, []string{"v2"}, p.CustomResourceDefinitions[0].VersionsAdded)
		require.Len(s, p.Restarts, 1)
		require.Contains(s, p.Images[0].After, "v1.1.0")
	})
}

// goBack carries out the way back to version 1.0.0, a step at a time.
func (s *story) goBack() {
	for range 40 {
		in := rollback.From(s.observed(), "alpha", "alpha.v1.0.0")
		in.AcceptLoss = true
		a, err := rollback.Advise(s.Context(), in)
		require.NoError(s, err)
		require.Empty(s, a.Refused)
		if len(a.Steps) == 0 {
			break
		}
		s.Logf("%d steps are left; the next one: %s", len(a.Steps), a.Steps[0].Wait)
		if action := a.Steps[0].Action; action != nil {
			if err := olmcore.Run(s.Context(), world.user, []olmcore.Action{action}); olmcore.Classify(err) != olmcore.Conflict {
				require.NoError(s, err)
			}
		} else {
			time.Sleep(2 * time.Second)
		}
	}
	eventually(s, "version 1.0.0 runs", func() v1alpha1.ClusterServiceVersionPhase { return s.csv("alpha.v1.0.0").Status.Phase }, v1alpha1.CSVPhaseSucceeded)
	require.False(s, exists[*v1alpha1.ClusterServiceVersion](s, "alpha.v1.1.0"))
	require.Equal(s, "alpha.v1.0.0", s.subscription("alpha").Status.InstalledCSV)
	eventually(s, "its Deployment is the old one", func() bool { return strings.Contains(container(s).Image, "v1.0.0") }, true)
	s.atRest()
	require.Equal(s, v1alpha1.CSVPhaseSucceeded, s.csv("alpha.v1.0.0").Status.Phase)
}

func TestThereIsAWayBack(t *testing.T) {
	t.Parallel()
	failed := func(s *story) {
		s.approve("alpha")
		eventually(s, "version 1.1.0 has failed", func() v1alpha1.ClusterServiceVersionPhase { return s.csv("alpha.v1.1.0").Status.Phase }, v1alpha1.CSVPhaseFailed)
	}
	tell(t, "from an upgrade that failed", func(s *story) {
		s.imageIs("alpha:v1.1.0", controlplane.Image{NeverReady: true})
		s.waiting(pkg("alpha").channel("stable", "alpha.v1.0.0", "alpha.v1.1.0 replaces alpha.v1.0.0"))
		failed(s)
		s.goBack()
	})
	tell(t, "from an upgrade that failed after its definitions had changed", func(s *story) {
		s.imageIs("alpha:v1.1.0", controlplane.Image{NeverReady: true})
		s.waiting(upgraded())
		failed(s)
		s.goBack()
	})
	tell(t, "from an upgrade that succeeded and is regretted, with the custom resources", func(s *story) {
		s.waiting(upgraded())
		s.approve("alpha")
		s.installed("alpha", "alpha.v1.1.0")
		s.given(`
apiVersion: NS.example.com/v1
kind: Widget
metadata: {name: kept}
spec: {size: 1}
`)
		s.goBack()
		require.NotEmpty(s, s.widgets())
	})
}

// widgets are the custom resources of the story.
func (s *story) widgets() []olmcore.Object {
	gvk := apiextensionsv1.SchemeGroupVersion.WithKind("Widget")
	gvk.Group, gvk.Version = s.apiGroup(), "v1"
	all, err := olmcore.ListKind(s.Context(), world.user, gvk, s.ns, nil)
	require.NoError(s, err)
	return all
}
