// SPDX-License-Identifier: Apache-2.0

// Package path finds the upgrade path of an operator, from the installed version to a target bundle or as far as the
// catalogs allow. A path consists of hops. Each hop is the Result of resolution.Resolve for the namespace after the
// previous hop, so the path is the one that the operators really take.
//
//	found, err := path.Find(path.Question{Input: in, Subscription: "cool", Target: "cool.v2.0.0"})
//	fmt.Print(found)           // also found.Mermaid() and found.DOT()
//
// A path does not predict what only a cluster shows, such as whether a version starts or whether an InstallPlan is
// approved. It assumes that every hop succeeds.
package path

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
)

// Question is the input of Find.
type Question struct {
	// Input is the current namespace. Find does not modify it.
	Input resolution.Input
	// Subscription is the name of the Subscription whose path Find returns. If it is empty, Find follows the paths of all
	// Subscriptions together.
	Subscription string
	// Target is the name of the ClusterServiceVersion of the bundle at the end of the path. If it is empty, the path goes
	// as far as possible. A Target requires a Subscription.
	Target string
	// AcrossChannels allows the path to switch to other channels of the package if it does not reach the Target without a
	// switch. Find then returns the path with the fewest hops. If AcrossChannels is set and Target is empty, the head of
	// the default channel is the target.
	AcrossChannels bool
}

// Path is the upgrade path that Find found.
type Path struct {
	Namespace    string `json:"namespace"`
	Subscription string `json:"subscription,omitempty"`
	Target       string `json:"target,omitempty"`
	// Reached means that the Target is installed at the end of the path. If there is no Target, Reached means that the
	// path ends because the catalogs offer no newer version.
	Reached bool  `json:"reached"`
	Hops    []Hop `json:"hops"`
	// Stops contains the end of the path of each requested Subscription, sorted by Subscription.
	Stops []Stop `json:"stops"`
}

// Hop contains the changes of one resolution.
type Hop struct {
	// Channel is the channel to which the Subscription must switch before this hop. It is empty if the channel stays the
	// same.
	Channel string `json:"channel,omitempty"`
	// Moves contains the operators that are installed or upgraded, sorted by name.
	Moves []Move `json:"moves"`
	// Approval means that this hop must be approved, because it changes the operator of a Subscription with Manual
	// approval.
	Approval bool `json:"approval,omitempty"`
}

// Move is the installation or upgrade of one operator.
type Move struct {
	// From is the ClusterServiceVersion that is replaced. It is empty for a new operator.
	From    string               `json:"from,omitempty"`
	To      string               `json:"to"`
	Version string               `json:"version"`
	Package string               `json:"package"`
	Channel string               `json:"channel"`
	Catalog types.NamespacedName `json:"catalog"`
	// Subscriptions contains the Subscriptions of the operator. It is empty for a new dependency. RequiredBy contains the
	// operators that require this operator.
	Subscriptions []string `json:"subscriptions,omitempty"`
	RequiredBy    []string `json:"requiredBy,omitempty"`
	// Deprecations contains the deprecation messages for the bundle, its channel and its package.
	Deprecations []string `json:"deprecations,omitempty"`
}

// Stop is the end of the path of one Subscription.
type Stop struct {
	Subscription string `json:"subscription"`
	// At is the ClusterServiceVersion that is installed at the end of the path. It is empty if there is none.
	At string `json:"at,omitempty"`
	// Code is the reason why the path ends: Head, OtherWay, Endless, Unresolved, or a reason for being held back.
	Code    resolution.HeldBackCode `json:"code"`
	Summary string                  `json:"summary"`
}

// These are the reasons for the end of a path, in addition to those of package resolution.
const (
	// Head means that no newer version is offered, or that the Target is installed.
	Head resolution.HeldBackCode = "Head"
	// OtherWay means that the Target is not on this path.
	OtherWay resolution.HeldBackCode = "OtherWay"
	// Endless means that the path returns to an earlier state or has too many hops.
	Endless resolution.HeldBackCode = "Endless"
)

const (
	// maxHops is the largest number of hops of a path.
	maxHops = 1000
	// maxTried is the largest number of resolutions in a search across channels.
	maxTried = 4000
)

// Find returns the upgrade path that a Question describes. It returns an *olmcore.InputError if the Subscription or the
// Target does not exist in the Input, or if Target or AcrossChannels is set without a Subscription.
func Find(q Question) (Path, error) {
	if q.Subscription == "" && (q.Target != "" || q.AcrossChannels) {
		return Path{}, &olmcore.InputError{Field: "Subscription", Problem: "is empty, but Target and AcrossChannels apply to one Subscription"}
	}
	start := newState(q.Input)
	sub := start.subscription(q.Subscription)
	if q.Subscription != "" && sub == nil {
		problem := fmt.Sprintf("%q is not in namespace %s", q.Subscription, q.Input.Namespace)
		return Path{}, &olmcore.InputError{Field: "Subscription", Problem: problem}
	}
	w := walk{}
	if q.Target != "" || q.AcrossChannels {
		pkg := sub.Spec.Package
		catalog := start.catalog(types.NamespacedName{Namespace: sub.Spec.CatalogSourceNamespace, Name: sub.Spec.CatalogSource})
		w.channels = catalog.Channels(pkg)
		if chain := catalog.Chain(pkg, cmp.Or(w.channels...)); q.Target == "" && len(chain) > 0 {
			q.Target = chain[0]
		}
		version := versionOf(catalog, pkg, q.Target)
		if version == "" {
			problem := fmt.Sprintf("%q is not a bundle with a version in package %s", q.Target, pkg)
			return Path{}, &olmcore.InputError{Field: "Target", Problem: problem}
		}
		w.bound = "<=" + version
		start.in.Pins = append(slices.Clone(start.in.Pins), resolution.Pin{Subscription: sub.Name, Range: w.bound})
	}
	w.question = q
	p := w.along(start)
	if q.AcrossChannels && !p.Reached {
		if across, found := w.across(start); found {
			return across, nil
		}
	}
	return p, nil
}

// versionOf returns the version of a bundle of a package. It is empty if the bundle has none.
func versionOf(catalog *resolution.Catalog, pkg, bundle string) string {
	if catalog == nil || catalog.ByName[pkg] == nil {
		return ""
	}
	for _, channel := range catalog.ByName[pkg].Channels {
		if e := channel.ByName[bundle]; e != nil && e.HasVersion {
			version := e.Version
			version.Build = nil // a range ignores build metadata and cannot contain it
			return version.String()
		}
	}
	return ""
}

// walk answers one Question. If its Target is empty, the path is as long as possible.
type walk struct {
	question Question // with the default Target, if the caller left it out
	// channels contains the channels of the Subscription's package, the default first.
	channels []string
	// bound is a version range that contains no version later than the Target.
	bound string
}

// along returns the path on which every Subscription stays in its channel.
func (w *walk) along(s state) Path {
	var hops []Hop
	for seen := map[string]bool{}; ; {
		seen[s.key()] = true
		res := resolution.Resolve(s.in)
		next, hop := s.after(&res)
		if len(hop.Moves) == 0 || w.arrived(s) {
			for n := len(hops); n > 0 && !w.concerns(hops[n-1]); n-- {
				hops = hops[:n-1]
			}
			return w.path(hops, s, &res, false)
		}
		hops = append(hops, hop)
		if s = next; seen[s.key()] || len(hops) == maxHops {
			return w.path(hops, s, &res, true)
		}
	}
}

// concerns reports whether a hop changes the Subscription of the Question.
func (w *walk) concerns(hop Hop) bool {
	moves := func(m Move) bool { return slices.Contains(m.Subscriptions, w.question.Subscription) }
	return w.question.Subscription == "" || slices.ContainsFunc(hop.Moves, moves)
}

// arrived reports whether the Target is installed.
func (w *walk) arrived(s state) bool {
	sub := s.subscription(w.question.Subscription)
	return w.question.Target != "" && sub != nil && sub.Status.InstalledCSV == w.question.Target
}

// step is a state that a search across channels reached, and the hops before it.
type step struct {
	state state
	hops  []Hop
}

// across returns the shortest path to the Target over all channels of the package. Of several shortest paths it returns
// the one that switches its channel last.
func (w *walk) across(start state) (Path, bool) {
	queue, seen := []step{{state: start}}, map[string]bool{}
	tried := 0
	for len(queue) > 0 && tried < maxTried {
		at := queue[0]
		queue = queue[1:]
		if w.arrived(at.state) {
			res := resolution.Resolve(at.state.in)
			return w.path(at.hops, at.state, &res, false), true
		}
		own := at.state.subscription(w.question.Subscription).Spec.Channel
		for _, channel := range append([]string{own}, w.channels...) {
			from, err := w.in(at.state, channel)
			if err != nil {
				continue
			}
			tried++
			res := resolution.Resolve(from.in)
			next, hop := from.after(&res)
			if len(hop.Moves) == 0 || seen[next.key()] {
				continue
			}
			if channel != own {
				hop.Channel = channel
			}
			seen[next.key()] = true
			queue = append(queue, step{next, append(slices.Clone(at.hops), hop)})
		}
	}
	return Path{}, false
}

// in returns the state after the Subscription switches to a channel.
func (w *walk) in(s state, channel string) (state, error) {
	in, err := model.Changed(s.in, resolution.Change{Subscription: w.question.Subscription, Channel: channel})
	return state{in}, err
}

// path returns the Path with these hops, which ends in state s for the reasons in res. endless means that the path
// returns to an earlier state or has too many hops.
func (w *walk) path(hops []Hop, s state, res *resolution.Result, endless bool) Path {
	p := Path{
		Namespace: w.question.Input.Namespace, Subscription: w.question.Subscription, Target: w.question.Target,
		Hops: hops, Reached: !endless,
	}
	for _, sub := range s.in.Subscriptions {
		if w.question.Subscription != "" && sub.Name != w.question.Subscription {
			continue
		}
		stop := Stop{Subscription: sub.Name, At: sub.Status.InstalledCSV, Code: Head, Summary: "no newer version is offered"}
		standing := res.Standing(sub.Name)
		switch {
		case endless:
			stop.Code, stop.Summary = Endless, "the path returns to an earlier state, or has too many hops"
		case w.arrived(s):
			stop.Summary = "the target is installed"
		case standing.Failure != "":
			stop.Code, stop.Summary = resolution.Unresolved, standing.Failure
		case standing.HeldBack != nil && !w.bounds(standing.HeldBack):
			stop.Code, stop.Summary = standing.HeldBack.Code, standing.HeldBack.Summary
		case w.question.Target != "":
			stop.Code, stop.Summary = w.obstacle(s)
		}
		p.Reached = p.Reached && stop.Code == Head
		p.Stops = append(p.Stops, stop)
	}
	slices.SortFunc(p.Stops, func(a, b Stop) int { return strings.Compare(a.Subscription, b.Subscription) })
	return p
}

// bounds reports whether a Subscription is only held back by the bound of this search.
func (w *walk) bounds(h *resolution.HeldBack) bool {
	return h.Code == resolution.Pinned && w.bound != "" && strings.Contains(h.Blocker, strconv.Quote(w.bound))
}

// obstacle returns why the path does not reach the Target. If other channels are allowed, this is what holds the
// Subscription back in one of them.
func (w *walk) obstacle(s state) (resolution.HeldBackCode, string) {
	for _, channel := range w.channels {
		other, err := w.in(s, channel)
		if err != nil || !w.question.AcrossChannels {
			break
		}
		res := resolution.Resolve(other.in)
		if h := res.Standing(w.question.Subscription).HeldBack; h != nil && !w.bounds(h) && h.Code != resolution.NoUpgradeEdge {
			return h.Code, fmt.Sprintf("in channel %s: %s", channel, h.Summary)
		}
	}
	return OtherWay, fmt.Sprintf("no upgrade from here leads to %s", w.question.Target)
}
