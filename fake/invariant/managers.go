// SPDX-License-Identifier: Apache-2.0

package invariant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/controller"
)

// minSettleTime is the shortest time in which the managers of TwoManagers must come to rest.
const minSettleTime = 30 * time.Minute

// TwoManagers checks that two managers of one world write nothing once the world is at rest, whatever each of them
// remembers. Every write of an undisturbed run fails once, in each way that a write can fail, so that one manager
// remembers a failure that the other one has repaired. Controllers is called once for each manager, which must have its
// own memory. Of Ignore, only entries for whole objects count. Rounds is not used.
func TwoManagers(w World) error {
	writes, err := w.managed(nil)
	if err != nil {
		return fmt.Errorf("two managers: %w", err)
	}
	for i, write := range writes {
		verb, target, _ := write.Action.Describe()
		for _, mode := range []fake.FaultMode{fake.FailWithoutEffect, fake.FailAfterEffect, fake.Conflict, fake.Crash} {
			if _, err := w.managed(&fake.Fault{Nth: i + 1, Mode: mode}); err != nil {
				return fmt.Errorf("two managers, %s at write %d, %s %s: %w", mode, i+1, verb, target, err)
			}
		}
	}
	return nil
}

// managed runs the world under two managers, with a fault unless it is nil, and returns their writes. The error
// contains the writes at rest.
func (w World) managed(fault *fake.Fault) ([]controller.Event, error) {
	if err := ignored(w.Ignore).validate(); err != nil {
		return nil, err
	}
	cluster, err := w.New()
	if err != nil {
		return nil, err
	}
	d := &fake.Driver{Cluster: cluster, Controllers: slices.Concat(w.Controllers(cluster), w.Controllers(cluster))}
	if fault != nil {
		cluster.Faults().Inject(*fault)
	}
	ctx, settleTime := context.Background(), max(w.SettleTime, minSettleTime)
	if err := d.RunFor(ctx, settleTime); err != nil {
		return nil, err
	}
	writes := w.counted(d.Events)
	d.Events = nil
	if err := d.RunFor(ctx, settleTime); err != nil {
		return nil, err
	}
	if late := w.counted(d.Events); len(late) > 0 {
		return nil, errors.New("at rest they still write\n" + controller.Format(late[:min(len(late), 20)]))
	}
	return writes, nil
}

func (w World) counted(events []controller.Event) []controller.Event {
	return slices.DeleteFunc(events, func(e controller.Event) bool {
		return e.Action == nil || len(ignored(w.Ignore).counted([]olmcore.Action{e.Action})) == 0
	})
}
