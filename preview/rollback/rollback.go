// SPDX-License-Identifier: Apache-2.0

package rollback

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/preview"
	"github.com/olmcore/olm/preview/internal/simulation"
)

// Advice is the way back to one version. Its JSON is stable: fields may be added. No list is nil.
type Advice struct {
	Subscription olmcore.Ref `json:"subscription"`
	// From is the newest version that exists, empty for none, and To the one to go back to.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Steps are what is to be done, in order; none when it is done, or when nothing is advised.
	Steps []Step `json:"steps"`
	// Losses are what the way costs that does not come back, Dependants the operators that would lack an API.
	Losses     []string `json:"losses"`
	Dependants []string `json:"dependants"`
	// Refused says why nothing is advised, empty when it is.
	Refused string `json:"refused,omitempty"`
	// Preview is what the whole way would change.
	Preview preview.Preview `json:"preview"`

	// SchemaChanges ask which custom resources the schemas of the version before would refuse: see
	// preview.Preview.SchemaChanges.
	SchemaChanges []installplan.SchemaChange `json:"-"`
}

// Step is one step of a way: an action, as a Record, or a wait.
type Step struct {
	// Wait is what must be so before the next step; empty for an action.
	Wait string `json:"wait,omitempty"`
	// Action is what is to be done, nil for a wait. Of the first step it is exact, with its preconditions; those of later
	// ones are how they will look, without UIDs and versions that are not known yet.
	Action olmcore.Action `json:"-"`
	// Record is the Action as JSON.
	Record *olmcore.Record `json:"record,omitempty"`
}

const (
	// maxWait bounds a wait in the simulation.
	maxWait = 15 * time.Minute
	// maxSteps bounds a way.
	maxSteps = 50
)

// Advise returns the way back. The error is an *olmcore.InputError, one for which apierrors.IsNotFound holds when the
// Subscription is not among the objects, or that of ctx.
func Advise(ctx context.Context, in Input) (Advice, error) {
	if err := cmp.Or(in.validate(), ctx.Err()); err != nil {
		return Advice{}, err
	}
	observed := simulation.StateOf(in.Objects)
	w, err := worldOf(observed, in.Namespace, in.Subscription)
	if err != nil {
		return Advice{}, err
	}
	ref := olmcore.RefOf(w.sub).Unversioned()
	a := Advice{Subscription: ref, To: cmp.Or(in.To, w.before())}
	if head := w.head(); head != nil {
		a.From = head.Name
	}
	refused := in.refusal(w, a, observed.IsTerminating(in.Namespace))
	if refused != "" {
		return in.refuse(a, refused), nil
	}
	if w.isAt(a.To) {
		a.Steps = []Step{}
		return in.assess(a, observed, observed, nil), nil
	}
	way, err := in.walk(ctx, a, false)
	if err == nil && way.Refused != "" && w.csvs[a.To] != nil && in.Options.Resolve != nil {
		var anew Advice
		if anew, err = in.walk(ctx, a, true); anew.Refused == "" {
			way = anew
		}
	}
	return way, err
}

// refusal says why no way leads back to a version, before anything is simulated. It is empty if there may be one.
func (in *Input) refusal(w world, a Advice, isTerminating bool) string {
	unread := slices.IndexFunc(in.NotRead, func(kind string) bool {
		return kind == v1alpha1.ClusterServiceVersionKind || kind == v1alpha1.InstallPlanKind
	})
	switch {
	case unread >= 0:
		return "what there is is not known: " + in.NotRead[unread] + " could not be read"
	case isTerminating:
		return "namespace " + in.Namespace + " is being deleted"
	case a.To == "" && w.runs(a.From):
		return a.From + " runs, and no version is known that was there before it: name one"
	case a.To == "":
		return "no version is known that was there before: name one"
	case w.sub.DeletionTimestamp != nil:
		return "the Subscription is being deleted: create it again first, with startingCSV " + a.To
	case w.others[a.To]:
		return a.To + " is another Subscription's"
	}
	return ""
}

func (in *Input) refuse(a Advice, why string) Advice {
	a.Refused, a.Steps = why, []Step{}
	a.Losses, a.Dependants = append([]string{}, a.Losses...), append([]string{}, a.Dependants...)
	return a
}

// before returns the version that was there before the newest one, empty when that is not known. Of a way that was
// stopped, or is at its end, it is the one that the way leads to: holdBack has noted it.
func (w world) before() string {
	head, noted := w.head(), ""
	if w.sub.Spec.InstallPlanApproval == v1alpha1.ApprovalManual {
		noted = w.sub.Spec.StartingCSV
	}
	switch {
	case head == nil:
		return noted
	case head.Name == noted: // it began there, or is back
		return noted
	}
	return head.Spec.Replaces
}

// runs reports whether a version is what the Subscription has, and runs.
func (w world) runs(name string) bool {
	c := w.csvs[name]
	return c != nil && c.Status.Phase == v1alpha1.CSVPhaseSucceeded && w.sub.Status.InstalledCSV == name
}

// isAt reports whether a version runs and no newer one exists or is being installed: there is nothing to go back from.
func (w world) isAt(to string) bool {
	return w.runs(to) && first(w, to, dropPlans, removeNewer, awaitRemoval, startAgain) == (step{})
}

// walk simulates the rollback.
func (in *Input) walk(ctx context.Context, a Advice, anew bool) (Advice, error) {
	options := in.Options
	options.Namespaces = []string{in.Namespace}
	s, err := simulation.New(in.Now, in.Objects, options, in.CustomResources)
	if err != nil {
		return Advice{}, err
	}
	was := s.State()
	worldBefore, err := worldOf(was, in.Namespace, in.Subscription)
	if err != nil {
		return Advice{}, err
	}
	a.Steps = []Step{}
	waited := ""
	for range maxSteps {
		w, err := worldOf(s.State(), in.Namespace, in.Subscription)
		if err != nil {
			return Advice{}, err
		}
		n := next(w, a.To, anew)
		switch {
		case n == (step{}):
			if older := olderThan(worldBefore, w.csvs[a.To]); older != "" {
				return in.refuse(a, a.To+" is newer than "+older+", which is installed: approve its InstallPlan instead"), nil
			}
			return in.assess(a, was, s.State(), in.asked(s)), nil
		case n.action == nil && n.wait == waited:
			a.Preview = preview.Between(was.Objects(), s.State().Objects())
			a.SchemaChanges = in.asked(s)
			return in.refuse(a, "it does not lead there: "+waited+" does not come"+why(w, a.To, s.Packed[a.To])), nil
		case n.action == nil:
			waited = n.wait
			if len(a.Steps) == 0 || a.Steps[len(a.Steps)-1].Wait != n.wait {
				a.Steps = append(a.Steps, Step{Wait: n.wait})
			}
			err = s.Run(ctx, maxWait)
		default:
			waited = ""
			err = a.take(ctx, s, n.action)
		}
		if err != nil {
			return Advice{}, err
		}
	}
	return in.refuse(a, fmt.Sprintf("it does not end within %d steps", maxSteps)), nil
}

// take notes an action and does it.
func (a *Advice) take(ctx context.Context, s *simulation.Simulation, action olmcore.Action) error {
	record, err := olmcore.RecordOf(action)
	if err != nil {
		return err
	}
	if len(a.Steps) > 0 { // what the simulation made up
		record.Target.UID, record.Target.ResourceVersion, record.DeleteOptions = "", "", nil
	}
	a.Steps = append(a.Steps, Step{Action: action, Record: &record})
	return s.Do(ctx, action)
}

func (in *Input) asked(s *simulation.Simulation) []installplan.SchemaChange {
	if in.CustomResources.Complete {
		return nil
	}
	return s.Changes
}

// assess says what a way that leads there costs.
func (in *Input) assess(a Advice, was, is simulation.State, asked []installplan.SchemaChange) Advice {
	a.Preview = preview.Between(was.Objects(), is.Objects())
	a.Preview.NotRead = append(a.Preview.NotRead, in.NotRead...)
	a.SchemaChanges = asked
	a.Losses, a.Dependants = losses(a), dependants(was, is, a)
	if len(a.Losses)+len(a.Dependants) > 0 && !in.AcceptLoss {
		return in.refuse(a, "something would be lost: "+strings.Join(slices.Concat(a.Losses, a.Dependants), "; "))
	}
	return a
}

// olderThan returns a version that was there before a way, which took it away, and comes before the one that the way
// led to. Empty: there is none.
func olderThan(was world, to *v1alpha1.ClusterServiceVersion) string {
	if to == nil || was.csvs[to.Name] != nil {
		return ""
	}
	for _, c := range was.newer(to.Name) {
		none := semver.Version{}
		known := !c.Spec.Version.Equals(none) && !to.Spec.Version.Equals(none)
		if to.Spec.Replaces == c.Name || known && to.Spec.Version.GT(c.Spec.Version.Version) {
			return c.Name
		}
	}
	return ""
}

// losses are what custom resources lose when definitions become what they were, or what of that is not known, and the
// versions of other operators that go because the plan that is approved replaces them.
func losses(a Advice) []string {
	all := []string{}
	if len(a.Steps) > 0 && slices.Contains(a.Preview.NotRead, "CustomResourceDefinition") {
		all = append(all, "what custom resources lose is not known, as no CustomResourceDefinition could be read")
	}
	for _, v := range a.Preview.Versions {
		if v.Name != a.To && v.Replaces != "" {
			all = append(all, v.Replaces+" becomes "+v.Name+", which the same InstallPlan brings")
		}
	}
	for _, d := range a.Preview.CustomResourceDefinitions {
		for _, field := range d.Breaking {
			all = append(all, "custom resources of "+d.Name+" lose "+field)
		}
	}
	return all
}

// dependants are operators of any namespace that need a version of a definition which is not served any more.
func dependants(was, is simulation.State, a Advice) []string {
	all := []string{}
	for _, o := range is {
		c, isCSV := o.(*v1alpha1.ClusterServiceVersion)
		if !isCSV || c.IsCopied() || c.Name == a.To && c.Namespace == a.Subscription.Namespace {
			continue
		}
		for _, r := range c.Spec.CustomResourceDefinitions.Required {
			if serves(was, r) && !serves(is, r) {
				all = append(all, fmt.Sprintf("%s in namespace %s needs version %s of %s", c.Name, c.Namespace, r.Version, r.Name))
			}
		}
	}
	slices.Sort(all)
	return all
}

func serves(state simulation.State, r v1alpha1.CRDDescription) bool {
	key := olmcore.Key{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition", Name: r.Name}
	crd, is := state[key].(*apiextensionsv1.CustomResourceDefinition)
	return is && slices.ContainsFunc(crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == r.Version && v.Served })
}

// why says what the version, or the plan that brings it, says itself, or that its content is in an image alone.
func why(w world, to, image string) string {
	said := ""
	if w.csvs[to] == nil && image != "" {
		said = "it is in image " + image + ", which is not unpacked here"
	} else if c := w.csvs[to]; c != nil {
		said = c.Status.Message
		for _, r := range c.Status.RequirementStatus {
			if r.Status != v1alpha1.RequirementStatusReasonPresent {
				said += "; " + r.Kind + " " + r.Name + " is " + string(r.Status)
			}
		}
	} else if ref := w.sub.Status.InstallPlanRef; ref != nil && w.plans[ref.Name] != nil {
		said = w.plans[ref.Name].Status.Message
	}
	if said == "" {
		if c := w.sub.Status.GetCondition(v1alpha1.SubscriptionResolutionFailed); c.Status == "True" {
			said = c.Message
		}
	}
	if said != "" {
		said = ": " + said
	}
	return said
}
