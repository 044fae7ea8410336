// SPDX-License-Identifier: Apache-2.0

package crvalidation

import (
	"context"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// JudgeWithin is Judge with other bounds.
func JudgeWithin(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange, resources, findings int) ([]installplan.ResourceVerdict, error) {
	return judgeWithin(ctx, all(r), changes, resources, findings)
}

// LiveWithin is what Live returns with other bounds.
func LiveWithin(ctx context.Context, p Pager, changes []installplan.SchemaChange, resources int) ([]installplan.ResourceVerdict, error) {
	return judgeWithin(ctx, inPages(p), changes, resources, maxFindings)
}
