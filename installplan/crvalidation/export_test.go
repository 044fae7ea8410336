// SPDX-License-Identifier: Apache-2.0

package crvalidation

import (
	"context"

	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/olmcore"
)

// JudgeWithin is Judge with other bounds.
func JudgeWithin(ctx context.Context, r olmcore.Reader, changes []installplan.SchemaChange, resources, findings int) ([]installplan.ResourceVerdict, error) {
	return judgeWithin(ctx, r, changes, resources, findings)
}
