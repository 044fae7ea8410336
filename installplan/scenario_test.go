// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/fake/scenario"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	. "github.com/olmcore/olm/internal/plantest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// TestScenarios runs the scenarios in testdata.
func TestScenarios(t *testing.T) {
	require.NoError(t, scenario.RunAll("testdata/*.txt", scenario.Config{
		Controllers: []controller.Controller{makersOf(installplan.Config{}, wanted), plans(installplan.Config{})},
		Commands: map[string]scenario.Command{
			"creator": creator,
			"owners":  owners,
			"approve": approve,
			"wipe":    wipe,
		},
	}))
}

// wanted returns the resolution of a namespace with an OperatorGroup: version 1 of each package that a Subscription
// follows, if that version does not exist.
func wanted(ctx context.Context, r olmcore.Reader, namespace string) (olmcore.Resolution, error) {
	subs, err := olmcore.List[*v1alpha1.Subscription](ctx, r, namespace, nil)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	groups, err := olmcore.List[*operatorsv1.OperatorGroup](ctx, r, namespace, nil)
	if err != nil || len(groups) == 0 {
		return olmcore.Resolution{}, err
	}
	csvs, err := olmcore.List[*v1alpha1.ClusterServiceVersion](ctx, r, namespace, nil)
	if err != nil {
		return olmcore.Resolution{}, err
	}
	var operators []olmcore.Operator
	for _, s := range subs {
		if o := Operator(s.Spec.Package); !slices.ContainsFunc(csvs, func(c *v1alpha1.ClusterServiceVersion) bool { return c.Name == o.Name }) {
			operators = append(operators, o)
		}
	}
	return Installs(operators...)(subs), nil
}

// creator NAMESPACE INSTALLS SUBSCRIPTION... calls create.Plan once as a controller that observes only these
// Subscriptions and resolved them to version 1 of the package INSTALLS. It runs and prints the actions.
func creator(w *scenario.World, args []string, _ []byte) (string, error) {
	if len(args) < 3 {
		return "", fmt.Errorf("creator NAMESPACE INSTALLS SUBSCRIPTION...")
	}
	in, err := create.Gather(context.Background(), w.Cluster, args[0], olmcore.Resolution{}, installplan.Config{})
	if err != nil {
		return "", err
	}
	in.Now = w.Cluster.Now()
	in.Subscriptions.Items = slices.DeleteFunc(slices.Clone(in.Subscriptions.Items), func(s *v1alpha1.Subscription) bool { return !slices.Contains(args[2:], s.Name) })
	in.Resolution = Installs(Operator(args[1]))(in.Subscriptions.Items)
	out, err := create.Plan(in)
	if err != nil {
		return "", err
	}
	result := Refer(in, out)
	return strings.Join(Describe(result), "\n"), olmcore.Run(context.Background(), w.Cluster, result.Actions)
}

// owners NAMESPACE prints each plan with its phase, owners and component labels.
func owners(w *scenario.World, args []string, _ []byte) (string, error) {
	all, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), w.Cluster, strings.Join(args, ""), nil)
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b *v1alpha1.InstallPlan) int { return a.Spec.Generation - b.Spec.Generation })
	var lines []string
	for _, p := range all {
		var names, labels []string
		for _, ref := range p.OwnerReferences {
			names = append(names, ref.Name)
		}
		for key := range p.Labels {
			if label, ok := strings.CutPrefix(key, olmcore.ComponentLabelPrefix); ok {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		lines = append(lines, fmt.Sprintf("generation %d, %s, %s: owners %v, labels %v, installs %v",
			p.Spec.Generation, p.Spec.Approval, p.Status.Phase, names, labels, p.Spec.ClusterServiceVersionNames))
	}
	return strings.Join(lines, "\n"), nil
}

// byGeneration returns the plan of a namespace with a generation.
func byGeneration(w *scenario.World, args []string) (*v1alpha1.InstallPlan, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("NAMESPACE GENERATION")
	}
	all, err := olmcore.List[*v1alpha1.InstallPlan](context.Background(), w.Cluster, args[0], nil)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if fmt.Sprint(p.Spec.Generation) == args[1] {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no plan of generation %s", args[1])
}

// approve NAMESPACE GENERATION approves a plan.
func approve(w *scenario.World, args []string, _ []byte) (string, error) {
	p, err := byGeneration(w, args)
	if err != nil {
		return "", err
	}
	return "", w.Cluster.Edit(olmcore.KeyOf(p), func(o olmcore.Object) { o.(*v1alpha1.InstallPlan).Spec.Approved = true })
}

// wipe NAMESPACE GENERATION removes all owner references and labels of a plan, as a tool that applies manifests may do.
func wipe(w *scenario.World, args []string, _ []byte) (string, error) {
	p, err := byGeneration(w, args)
	if err != nil {
		return "", err
	}
	return "", w.Cluster.Edit(olmcore.KeyOf(p), func(o olmcore.Object) {
		o.SetOwnerReferences(nil)
		o.SetLabels(nil)
	})
}
